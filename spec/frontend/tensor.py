"""The class Tensor: builds graphs with numpy's operators; an evaluator computes their values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from operator import index
from types import EllipsisType
from typing import Any, SupportsIndex, cast

from uop.spec.args import Arg, Device, DTypeArg, LoadArg, PadFill, ReplicatedArg
from uop.spec.conditions.labels import invalid
from uop.spec.dtype import DType, dtypes
from uop.spec.frontend import views
from uop.spec.frontend.calls import Call, composed, record
from uop.spec.frontend.evaluator import evaluator, installed
from uop.spec.frontend.values import (
    NUMBERS,
    Values,
    bound,
    common_dtype,
    held_list,
    holding,
    number,
)
from uop.spec.frontend.views import Axes
from uop.spec.ops.names import Op
from uop.spec.registry import Shape
from uop.spec.text.literal import Word
from uop.spec.uop import UOp

NAME = "unaryelementwise"
"""The name in a trace of an op that is several nodes."""
NEAR = 0.5
"""For smaller x 1 - 2/(exp(2x) + 1) would cancel."""


FOLDS = {"SUM": Op.ADD, "PROD": Op.MUL, "MAX": Op.MAX}
"""The ops that fold, by the kind that a trace names."""
MEAN = "MEAN"
Size = SupportsIndex | Sequence[SupportsIndex]
Method = Callable[["Tensor", Any], "Tensor"]


def _operator(op: Op) -> tuple[Method, Method]:
    """The methods of an operator, for a Tensor on its left and for one on its right alone."""

    def left(self: Tensor, other: Any) -> Tensor:
        return Tensor.of(op, self, _met(other, self))

    def right(self: Tensor, other: Any) -> Tensor:
        return Tensor.of(op, _met(other, self), self)

    return left, right


class Tensor(Values):
    """An immutable value: a graph under the node `uop`, which is evaluated on request.

    `Tensor(data)` takes a number (a CONST), nested lists or an array of the installed evaluator
    (a BUFFER with a copy), or a UOp. Without a dtype, numbers are int32, float32 or bool. In an
    operator a number takes the dtype of the Tensor; two Tensors must have the same dtype.
    """

    __slots__ = ("__weakref__", "_held", "_operand", "uop")
    # Makes numpy leave operators between arrays and Tensors to Tensor.
    __array_ufunc__ = None

    uop: UOp

    def __init__(self, data: Any, dtype: DType | None = None, device: Device = None) -> None:
        if dtype is not None and not isinstance(dtype, DType):
            raise invalid("TENSOR.c5", "Tensor", repr(dtype))
        object.__setattr__(self, "uop", _graph(data, dtype, device))
        object.__setattr__(self, "_held", None)
        object.__setattr__(self, "_operand", None)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Tensor is immutable: cannot set {name}")

    @staticmethod
    def of(op: Op, *operands: Tensor | UOp, arg: Arg | None = None) -> Tensor:
        """A Tensor of any op."""
        nodes = [t.operand if isinstance(t, Tensor) else t for t in operands]
        return Tensor(UOp(op, *nodes, arg=arg))

    @staticmethod
    def stack(*tensors: Tensor) -> Tensor:
        """Join Tensors along a new first axis."""
        return Tensor.of(Op.STACK, *tensors)

    @staticmethod
    def from_dlpack(data: Any) -> Tensor:
        """A Tensor of an array that another library passes by DLPack; nobody may write to it
        afterwards.

        Row-major memory is shared, other memory copied. InvalidError TENSOR.c7 for an object
        without DLPack, for memory of another device than the CPU, and for elements of no dtype.
        """
        return Tensor(bound(evaluator().adopt(data), None))

    @property
    def shape(self) -> Shape:
        return self.uop.shape

    @property
    def dtype(self) -> DType:
        return self.uop.dtype

    @property
    def device(self) -> Device:
        return self.uop.device

    @property
    def axis(self) -> int | None:
        return self.uop.axis

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    # Values.

    def eval(self) -> Tensor:
        """Evaluate this Tensor now, if nothing has yet, and return it."""
        self._value()
        return self

    def realize(self) -> Tensor:
        """A Tensor of the value alone: the graph is dropped, and no gradient flows on."""
        return Tensor(holding(self._value(), self.uop))

    # Elementwise.

    __add__, __radd__ = _operator(Op.ADD)
    __sub__, __rsub__ = _operator(Op.SUB)
    __mul__, __rmul__ = _operator(Op.MUL)
    __truediv__, __rtruediv__ = _operator(Op.DIV)
    __floordiv__, __rfloordiv__ = _operator(Op.IDIV)
    __mod__, __rmod__ = _operator(Op.MOD)
    __pow__, __rpow__ = _operator(Op.POW)
    __and__, __rand__ = _operator(Op.AND)
    __or__, __ror__ = _operator(Op.OR)
    __xor__, __rxor__ = _operator(Op.XOR)
    __lshift__, __rlshift__ = _operator(Op.SHL)
    __rshift__, __rrshift__ = _operator(Op.SHR)
    __lt__ = _operator(Op.CMPLT)[0]
    __le__ = _operator(Op.CMPLE)[0]
    __gt__ = _operator(Op.CMPGT)[0]
    __ge__ = _operator(Op.CMPGE)[0]
    __eq__ = _operator(Op.CMPEQ)[0]  # type: ignore[assignment]
    __ne__ = _operator(Op.CMPNE)[0]  # type: ignore[assignment]
    __hash__ = object.__hash__

    def __neg__(self) -> Tensor:
        return Tensor.of(Op.NEG, self)

    def recip(self) -> Tensor:
        return Tensor.of(Op.RECIP, self)

    def trunc(self) -> Tensor:
        return Tensor.of(Op.TRUNC, self)

    def sqrt(self) -> Tensor:
        return Tensor.of(Op.SQRT, self)

    def sin(self) -> Tensor:
        return Tensor.of(Op.SIN, self)

    def exp2(self) -> Tensor:
        return Tensor.of(Op.EXP2, self)

    def log2(self) -> Tensor:
        return Tensor.of(Op.LOG2, self)

    @composed(NAME, kind=Word("Kind.ABS"))
    def __abs__(self) -> Tensor:
        """The maximum of x and -x."""
        return self.maximum(-self)

    @composed(NAME, kind=Word("Kind.EXP"))
    def exp(self) -> Tensor:
        """exp2(x / ln 2): its relative error grows with x."""
        return (self * (1 / math.log(2))).exp2()

    @composed(NAME, kind=Word("Kind.LOG"))
    def log(self) -> Tensor:
        """log2(x) ln 2."""
        return self.log2() * math.log(2)

    @composed(NAME, kind=Word("Kind.RELU"))
    def relu(self) -> Tensor:
        """max(x, 0), by MAX."""
        return self.maximum(0)

    @composed(NAME, kind=Word("Kind.SIGMOID"))
    def sigmoid(self) -> Tensor:
        """1 / (1 + exp(-x)), from exp(-|x|), which does not overflow."""
        is_negative = self < 0
        e = is_negative.where(self, -self).exp()
        r = (e + 1).recip()
        return is_negative.where(e * r, r)

    @composed(NAME, kind=Word("Kind.TANH"))
    def tanh(self) -> Tensor:
        """The hyperbolic tangent, with a small relative error for all x: near 0 by Lambert's
        continued fraction, elsewhere by 1 - 2/(exp(2|x|) + 1).
        """
        if not self.dtype.is_float:
            raise invalid("TENSOR.c10", "tanh", self.dtype.name)
        precision = self.dtype.format.precision
        # From here on, in quarters, the result rounds to 1, and a larger exp could overflow.
        most = math.ceil((precision + 2) * math.log(2) * 2) / 4
        size = abs(self)
        far = 1 - 2 / (((size > most).where(most, size) * 2).exp() + 1)
        near = (size < NEAR).where(self, 0)
        square, below = near * near, near * 0
        # Each step adds five bits or more below NEAR.
        for odd in range(2 * (precision // 5) + 3, 1, -2):
            below = square / (below + odd)
        return (size < NEAR).where(near / (below + 1), (self < 0).where(-far, far))

    @composed(NAME, kind=Word("Kind.INVERT"))
    def __invert__(self) -> Tensor:
        """Flip every bit; logical on bool."""
        return (
            Tensor.of(Op.NOT, self)
            if self.dtype is dtypes.bool
            else self ^ (-1 if self.dtype.is_signed else self.dtype.max)
        )

    def __matmul__(self, other: Any) -> Tensor:
        """Matrix product over the last axis of this one and the last but one of the other; the
        other axes broadcast.
        """
        return _matmul(self, _met(other, self))

    def maximum(self, other: Any) -> Tensor:
        return Tensor.of(Op.MAX, self, _met(other, self))

    def minimum(self, other: Any) -> Tensor:
        """The minimum, by MAX of the reversed order: -x of floats, ~x of integers and bool."""
        return _minimum(self, _met(other, self))

    def where(self, chosen: Any, other: Any) -> Tensor:
        """`chosen` if this is true, else `other`, element by element."""
        if not isinstance(chosen, Tensor):
            chosen = _met(chosen, other) if isinstance(other, Tensor) else Tensor(chosen)
        return Tensor.of(Op.WHERE, self, chosen, _met(other, chosen))

    def mulacc(self, factor: Any, term: Any) -> Tensor:
        """self * factor + term."""
        return Tensor.of(Op.MULACC, self, _met(factor, self), _met(term, self))

    def cast(self, dtype: DType) -> Tensor:
        return Tensor.of(Op.CAST, self, arg=DTypeArg(dtype))

    def bitcast(self, dtype: DType) -> Tensor:
        return Tensor.of(Op.BITCAST, self, arg=DTypeArg(dtype))

    # Views.

    def reshape(self, *shape: Size) -> Tensor:
        """Change the shape; one size may be -1 and is inferred."""
        return Tensor(views.reshaped(self.operand, _sizes(shape)))

    def expand(self, *shape: Size) -> Tensor:
        """Broadcast to a shape; -1 keeps the size of an axis."""
        return _expand(self, _sizes(shape))

    def permute(self, *order: Size) -> Tensor:
        return Tensor(views.permuted(self.operand, _sizes(order)))

    def transpose(self, a: int, b: int) -> Tensor:
        """Exchange two axes."""
        order = list(range(self.ndim))
        order[a], order[b] = order[b], order[a]
        return self.permute(order)

    @property
    def T(self) -> Tensor:  # noqa: N802 - numpy's name
        return self.permute(list(reversed(range(self.ndim))))

    def flip(self, axes: Axes = None) -> Tensor:
        return Tensor(views.flipped(self.operand, axes))

    def pad(self, *pairs: tuple[int, int], fill: PadFill = PadFill.INVALID) -> Tensor:
        """Add (before, after) elements along each axis: absent ones, or zeros."""
        return Tensor(views.padded(self.operand, pairs, fill))

    def shrink(self, *bounds: tuple[int, int]) -> Tensor:
        """Keep the elements from start to end along each axis."""
        return Tensor(views.shrunk(self.operand, bounds))

    def shrink_to(self, *shape: Size) -> Tensor:
        """Keep the first elements along each axis."""
        return self.shrink(*((0, dim) for dim in _sizes(shape)))

    def __getitem__(self, key: Any) -> Tensor:
        """Index by integers, slices, `...`, None, and integer Tensors of shape () or (k,)."""
        keys = key if isinstance(key, tuple) else (key,)
        return _indexed(self, [Tensor(k) if _is_list(k) else k for k in keys])

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a Tensor of shape () has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return (self[k] for k in range(len(self)))

    # Folds.

    def reduce(self, op: Op, axes: Axes = None) -> Tensor:
        """Fold along these axes, by default all; their size becomes 1."""
        return Tensor(views.folded(self.operand, op, axes))

    def sum(self, axes: Axes = None) -> Tensor:
        """The sum along these axes, by default all, which go."""
        return self._folded("SUM", axes)

    def prod(self, axes: Axes = None) -> Tensor:
        """The product along these axes, which go."""
        return self._folded("PROD", axes)

    def max(self, axes: Axes = None) -> Tensor:
        """The maximum along these axes, which go."""
        return self._folded("MAX", axes)

    def mean(self, axes: Axes = None) -> Tensor:
        """The mean along these axes, which go."""
        return self._folded(MEAN, axes)

    def _folded(self, kind: str, axes: Axes) -> Tensor:
        chosen = tuple(sorted(views.reduced_axes(self.operand, axes)))
        return _reduce(self, Word(f"Kind.{kind}"), chosen)

    # Compositions that are methods.

    @composed("softmax")
    def softmax(self, axis: int = -1) -> Tensor:
        """exp(x - max x) divided by its sum along an axis."""
        e = (self - self.reduce(Op.MAX, axis)).exp()
        return e / e.reduce(Op.ADD, axis)

    @composed("layer_norm")
    def layer_norm(self, weight: Tensor, bias: Tensor, epsilon: float = 1e-5) -> Tensor:
        """Normalise the last axis to mean 0 and variance 1, then scale by weight and add bias."""
        n = self.shape[-1]
        centred = self - self.reduce(Op.ADD, -1) / n
        variance = (centred * centred).reduce(Op.ADD, -1) / n
        return centred / (variance + epsilon).sqrt() * weight + bias

    # Memory and markers.

    def copy(self, device: Device) -> Tensor:
        """Copy to another device; over several devices the copy is split along axis 0."""
        return Tensor.of(Op.LOAD, self, arg=LoadArg(device))

    def replicated(self, axes: Axes) -> Tensor:
        """One of the equal copies along these axes, without these axes."""
        arg = ReplicatedArg(tuple(sorted(views.reduced_axes(self.operand, axes))))
        return Tensor(views.dropped(Tensor.of(Op.REPLICATED, self, arg=arg).uop, axes))

    def assign(self, value: Any) -> Tensor:
        """Store a value in this memory; returns the memory AFTER the STORE."""
        value = _met(value, self)
        stored = Tensor.of(Op.STORE, self.uop, value.expand(self.shape))
        after = Tensor.of(Op.AFTER, self.uop, stored)
        record(after.uop, Call("assign", (self.uop, value.operand), {}))
        return after

    def contiguous(self) -> Tensor:
        return Tensor.of(Op.CONTIGUOUS, self)

    def contiguous_backward(self) -> Tensor:
        return Tensor.of(Op.CONTIGUOUSBACKWARD, self)

    def detach(self) -> Tensor:
        return Tensor.of(Op.DETACH, self)


def _graph(data: Any, dtype: DType | None, device: Device) -> UOp:
    if isinstance(data, UOp):
        return _converted(data, dtype, device)
    if isinstance(data, NUMBERS) and device is None:
        return number(data, dtype or common_dtype([data]))
    known = installed()
    held = None if known is None else known.hold(data)
    if held is None:
        held = held_list(data, dtype)
    return _converted(bound(held, device), dtype, None)


def _converted(u: UOp, dtype: DType | None, device: Device) -> UOp:
    """Cast and copy a node to a dtype and device, if they are not None."""
    if dtype not in (None, u.dtype):
        u = UOp(Op.CAST, u, arg=DTypeArg(dtype))
    return u if device in (None, u.device) else UOp(Op.LOAD, u, arg=LoadArg(device))


def _met(value: Any, like: Tensor) -> Tensor:
    """An operand as a node: a number takes the dtype of the Tensor."""
    if isinstance(value, Tensor):
        return value
    return Tensor(number(value, like.dtype)) if isinstance(value, NUMBERS) else Tensor(value)


def _sizes(sizes: Sequence[Size]) -> list[int]:
    """Sizes that were passed one by one or as one sequence."""
    flat = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], Sequence) else sizes
    strange = [size for size in flat if not isinstance(size, SupportsIndex)]
    if strange:
        raise invalid("SHAPE.c1", "Tensor", repr(strange[0]))
    return [index(cast(SupportsIndex, size)) for size in flat]


def _is_list(key: object) -> bool:
    return not (key is None or key is Ellipsis or isinstance(key, int | slice | Tensor))


@composed("matmul")
def _matmul(a: Tensor, b: Tensor) -> Tensor:
    """MUL broadcasts both, with axes of size 1 between, and REDUCE adds the products."""
    return Tensor(views.matmul(a.operand, b.operand))


@composed("binaryelementwise", kind=Word("Kind.MINIMUM"))
def _minimum(x: Tensor, other: Tensor) -> Tensor:
    """The maximum in the reversed order."""
    if x.dtype.is_float:
        return -(-x).maximum(-other)
    return ~(~x).maximum(~other)


@composed("expand")
def _expand(x: Tensor, shape: list[int]) -> Tensor:
    """EXPAND takes as many axes as there will be: RESHAPE first puts axes of size 1 in front."""
    return Tensor(views.expanded(x.operand, shape))


@composed("getitem")
def _indexed(x: Tensor, key: list[int | slice | EllipsisType | Tensor | None]) -> Tensor:
    """SHRINK, FLIP and PAD select slices; INDEX takes the first axis, so PERMUTE puts it there."""
    keys = [k.operand if isinstance(k, Tensor) else k for k in key]
    return Tensor(views.indexed(x.operand, keys))


@composed("reduce", keepdims=False)
def _reduce(x: Tensor, kind: Word, axes: tuple[int, ...]) -> Tensor:
    """REDUCE leaves axes of size 1, which RESHAPE drops; a mean is the sum divided by a number."""
    name = kind.rpartition(".")[2]
    folded = views.folded(x.operand, FOLDS.get(name, Op.ADD), axes)
    total = Tensor(views.dropped(folded, axes))
    return total / (x.size // max(total.size, 1)) if name == MEAN else total
