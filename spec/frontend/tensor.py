"""The class Tensor: builds graphs with numpy's operators; an evaluator computes their values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from operator import index
from types import EllipsisType
from typing import Any, SupportsIndex, cast

from uop.spec.args import Arg, Device, DTypeArg, LoadArg, PadFill, ReplicatedArg
from uop.spec.conditions.labels import SHAPE_C1, TENSOR_C4, TENSOR_C5
from uop.spec.dtype import DType, Number, dtypes
from uop.spec.errors import users_line
from uop.spec.frontend import views
from uop.spec.frontend.data import (
    NUMBERS,
    bound,
    common_dtype,
    contents,
    held_list,
    nested,
    number,
)
from uop.spec.frontend.evaluator import Held, evaluator, installed
from uop.spec.frontend.operators import Operators
from uop.spec.frontend.views import Axes
from uop.spec.ops.names import Op
from uop.spec.registry import Shape
from uop.spec.text.array import Array
from uop.spec.uop import UOp

Size = SupportsIndex | Sequence[SupportsIndex]


class Tensor(Operators):
    """An immutable value: a graph under the node `uop`, which is evaluated on request.

    `Tensor(data)` takes a number (a CONST), nested lists or an array of the installed evaluator
    (a BUFFER with a copy), or a UOp. Without a dtype, numbers are int32, float32 or bool. In an
    operator a number takes the dtype of the Tensor; two Tensors must have the same dtype.
    """

    __slots__ = ("__weakref__", "uop")
    # Makes numpy leave operators between arrays and Tensors to Tensor.
    __array_ufunc__ = None

    uop: UOp

    def __init__(self, data: Any, dtype: DType | None = None, device: Device = None) -> None:
        if dtype is not None and not isinstance(dtype, DType):
            raise TENSOR_C5.error("Tensor", repr(dtype), users_line())
        object.__setattr__(self, "uop", _graph(data, dtype, device))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Tensor is immutable: cannot set {name}")

    @staticmethod
    def of(op: Op, *operands: Tensor | UOp, arg: Arg | None = None) -> Tensor:
        """A Tensor of any op."""
        return Tensor(UOp(op, *(t.uop if isinstance(t, Tensor) else t for t in operands), arg=arg))

    @staticmethod
    def stack(*tensors: Tensor) -> Tensor:
        """Join Tensors along a new first axis."""
        return Tensor.of(Op.STACK, *tensors)

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

    def __repr__(self) -> str:
        where = "" if self.device is None else f" @{self.device}"
        return f"<Tensor {self.dtype.name}{list(self.shape)}{where} : {self.uop.op.name}>"

    def _repr_html_(self) -> str:
        """The drawing of the graph for notebooks; computes no value."""
        return self.uop._repr_html_()

    # Values.

    def _value(self) -> Held:
        return evaluator().evaluate(self.uop, contents(self.uop))

    def numpy(self) -> Any:
        """The value as an array; UnsupportedError without an installed evaluator."""
        return evaluator().array(self._value())

    def tolist(self) -> Any:
        """The value as nested lists of Python numbers."""
        held = self._value()
        data = evaluator().array(held).tobytes()
        return nested(Array(held.dtype, held.shape, data).values, held.shape)

    def item(self) -> Any:
        """The only element."""
        return self.reshape(()).tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """For numpy."""
        return self.numpy().__array__(dtype)

    def __dlpack__(self, **options: Any) -> Any:
        """For any library that speaks DLPack."""
        return self.numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The CPU."""
        return 1, 0

    def realize(self) -> Tensor:
        """A Tensor of the computed value; without a device if this one is replicated."""
        device = None if isinstance(self.device, tuple) and self.axis != 0 else self.device
        return Tensor(bound(self._value(), device))

    def __bool__(self) -> bool:
        raise TENSOR_C4.error(repr(self), where=users_line())

    def _with(self, op: Op, other: Any) -> Tensor:
        return Tensor.of(op, self, _met(other, self))

    def _behind(self, op: Op, other: Any) -> Tensor:
        return Tensor.of(op, _met(other, self), self)

    def __neg__(self) -> Tensor:
        return Tensor.of(Op.NEG, self)

    def __invert__(self) -> Tensor:
        """Flip every bit; logical on bool."""
        return Tensor.of(Op.NOT, self) if self.dtype is dtypes.bool else self ^ _all_ones(self)

    def __abs__(self) -> Tensor:
        return self.maximum(-self)

    def __matmul__(self, other: Any) -> Tensor:
        """Matrix product over the last axis of this one and the last but one of the other; the
        other axes broadcast.
        """
        a, b = self, _met(other, self)
        left = a.reshape(*a.shape, 1)
        if b.ndim == 1:
            return (a * b).sum(-1)
        return (left * b.reshape(*b.shape[:-2], *[1] * (a.ndim > 1), *b.shape[-2:])).sum(-2)

    def maximum(self, other: Any) -> Tensor:
        return self._with(Op.MAX, other)

    def minimum(self, other: Any) -> Tensor:
        """The minimum, by MAX of the reversed order: -x of floats, ~x of integers and bool."""
        other = _met(other, self)
        if self.dtype.is_float:
            return -(-self).maximum(-other)
        return ~(~self).maximum(~other)

    def where(self, chosen: Any, other: Any) -> Tensor:
        """`chosen` if this is true, else `other`, element by element."""
        if not isinstance(chosen, Tensor):
            chosen = _met(chosen, other) if isinstance(other, Tensor) else Tensor(chosen)
        return Tensor.of(Op.WHERE, self, chosen, _met(other, chosen))

    def mulacc(self, factor: Any, term: Any) -> Tensor:
        """self * factor + term."""
        return Tensor.of(Op.MULACC, self, _met(factor, self), _met(term, self))

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

    def exp(self) -> Tensor:
        return (self * (1 / math.log(2))).exp2()

    def log(self) -> Tensor:
        return self.log2() * math.log(2)

    def cast(self, dtype: DType) -> Tensor:
        return Tensor.of(Op.CAST, self, arg=DTypeArg(dtype))

    def bitcast(self, dtype: DType) -> Tensor:
        return Tensor.of(Op.BITCAST, self, arg=DTypeArg(dtype))

    # Views.

    def reshape(self, *shape: Size) -> Tensor:
        """Change the shape; one size may be -1 and is inferred."""
        return Tensor(views.reshaped(self.uop, _sizes(shape)))

    def expand(self, *shape: Size) -> Tensor:
        """Broadcast to a shape; -1 keeps the size of an axis."""
        return Tensor(views.expanded(self.uop, _sizes(shape)))

    def permute(self, *order: Size) -> Tensor:
        return Tensor(views.permuted(self.uop, _sizes(order)))

    def transpose(self, a: int, b: int) -> Tensor:
        """Exchange two axes."""
        order = list(range(self.ndim))
        order[a], order[b] = order[b], order[a]
        return self.permute(order)

    @property
    def T(self) -> Tensor:  # noqa: N802 - numpy's name
        return self.permute(list(reversed(range(self.ndim))))

    def flip(self, axes: Axes = None) -> Tensor:
        return Tensor(views.flipped(self.uop, axes))

    def pad(self, *pairs: tuple[int, int], fill: PadFill = PadFill.INVALID) -> Tensor:
        """Add (before, after) elements along each axis: absent ones, or zeros."""
        return Tensor(views.padded(self.uop, pairs, fill))

    def shrink(self, *bounds: tuple[int, int]) -> Tensor:
        """Keep the elements from start to end along each axis."""
        return Tensor(views.shrunk(self.uop, bounds))

    def shrink_to(self, *shape: Size) -> Tensor:
        """Keep the first elements along each axis."""
        return self.shrink(*((0, dim) for dim in _sizes(shape)))

    def __getitem__(self, key: Any) -> Tensor:
        """Index by integers, slices, `...`, None, and integer Tensors of shape () or (k,)."""
        keys = key if isinstance(key, tuple) else (key,)
        return Tensor(views.indexed(self.uop, [_key(k) for k in keys]))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a Tensor of shape () has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return (self[k] for k in range(len(self)))

    # Folds.

    def reduce(self, op: Op, axes: Axes = None) -> Tensor:
        """Fold along these axes, by default all; their size becomes 1."""
        return Tensor(views.folded(self.uop, op, axes))

    def sum(self, axes: Axes = None) -> Tensor:
        return self._folded(Op.ADD, axes)

    def prod(self, axes: Axes = None) -> Tensor:
        return self._folded(Op.MUL, axes)

    def max(self, axes: Axes = None) -> Tensor:
        return self._folded(Op.MAX, axes)

    def mean(self, axes: Axes = None) -> Tensor:
        total = self.sum(axes)
        return total / (self.size // max(total.size, 1))

    def _folded(self, op: Op, axes: Axes) -> Tensor:
        """Drop the folded axes."""
        return Tensor(views.dropped(views.folded(self.uop, op, axes), axes))

    # Memory and markers.

    def copy(self, device: Device) -> Tensor:
        """Copy to another device; over several devices the copy is split along axis 0."""
        return Tensor.of(Op.LOAD, self, arg=LoadArg(device))

    def replicated(self, axes: Axes) -> Tensor:
        """One of the equal copies along these axes, without these axes."""
        arg = ReplicatedArg(tuple(sorted(views.reduced_axes(self.uop, axes))))
        return Tensor(views.dropped(Tensor.of(Op.REPLICATED, self, arg=arg).uop, axes))

    def assign(self, value: Any) -> Tensor:
        """Store a value in this memory; returns the memory AFTER the STORE."""
        stored = Tensor.of(Op.STORE, self, _met(value, self).expand(self.shape))
        return Tensor.of(Op.AFTER, self, stored)

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


def _all_ones(like: Tensor) -> Number:
    return -1 if like.dtype.is_signed else like.dtype.max


def _sizes(sizes: Sequence[Size]) -> list[int]:
    """Sizes that were passed one by one or as one sequence."""
    flat = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], Sequence) else sizes
    strange = [size for size in flat if not isinstance(size, SupportsIndex)]
    if strange:
        raise SHAPE_C1.error("Tensor", repr(strange[0]), users_line())
    return [index(cast(SupportsIndex, size)) for size in flat]


def _key(key: Any) -> int | slice | EllipsisType | UOp | None:
    return key.uop if isinstance(key, Tensor) else Tensor(key).uop if _is_list(key) else key


def _is_list(key: object) -> bool:
    return not (key is None or key is Ellipsis or isinstance(key, int | slice))
