"""Lowers a tensor at an index to scalar ops; movement ops become index arithmetic (in rangeify)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from functools import partial, reduce
from typing import NamedTuple, TypeVar, cast

from uop.compiler.build import ONE, ZERO, as_dtype, bits_as, both, identity, index, only_where
from uop.compiler.loops import iterations
from uop.compiler.rewriting.patterns import int_value, truth
from uop.compiler.rewriting.rewrite import Fired, Rewriter, unobserved
from uop.spec.args import (
    AddrSpace,
    AxisType,
    FlipArg,
    ParamArg,
    PermuteArg,
    RangeArg,
    ReduceArg,
    arg_of,
)
from uop.spec.conditions.clauses import lacking
from uop.spec.dtype import DTYPES, DType, dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.graph import base_of
from uop.spec.kernel.forms import ELEMENTWISE
from uop.spec.ops.names import Op
from uop.spec.registry import Sizes, ops_of
from uop.spec.uop import UOp, const, dims, index_const

Index = tuple[UOp, ...]
T = TypeVar("T")


class Element(NamedTuple):
    """One element of a tensor; it is read only where the gate is true (None: always).

    A NamedTuple is faster than a dataclass, and each node of a kernel has an element.
    """

    tensor: UOp
    at: Index
    gate: UOp | None = None


Steps = Generator[Element, UOp, UOp]
"""A rule is a coroutine: it yields the elements whose scalars it needs, and returns its scalar. So
rules do not call each other, and the stack does not limit the depth of a graph.
"""


class _Started(NamedTuple):
    """A rule that is lowering an element."""

    element: Element
    rule: Rule
    steps: Steps


class Lowering:
    """Lowers one kernel: holds its PARAMs, its RANGEs, and a cache of lowered elements.

    A tensor is read from the buffer that `stored` returns for it; one without a buffer is computed.
    The kernels of a program share the rewriter that simplifies, since their index arithmetic is
    similar.
    """

    def __init__(
        self, stored: Callable[[UOp], UOp | None], simplify: Rewriter, fired: Fired = unobserved
    ) -> None:
        self.simplify, self._fired = simplify, fired
        self._flat: dict[tuple[Index, Sizes], UOp] = {}
        self._ranges = 0
        self.buffers: list[UOp] = []
        self._stored = stored
        self._params: dict[UOp, UOp] = {}
        self._done: dict[Element, UOp] = {}

    def param(self, buffer: UOp, shape: Sizes) -> UOp:
        """The flat PARAM of a buffer in the kernel."""
        if buffer not in self._params:
            arg = ParamArg(len(self.buffers), buffer.dtype, None, AddrSpace.GLOBAL)
            self._params[buffer] = UOp(Op.PARAM, dims((self.product(shape),)), arg=arg)
            self.buffers.append(buffer)
        return self._params[buffer]

    def element(self, tensor: UOp, at: Index) -> UOp:
        """The element of a tensor as a scalar."""
        first = Element(tensor, at)
        answer = self._done.get(first)
        stack: list[_Started] = [] if answer is not None else [self._started(first)]
        while stack:
            top = stack[-1]
            try:
                wanted = next(top.steps) if answer is None else top.steps.send(answer)
            except StopIteration as result:
                stack.pop()
                self._done[top.element] = answer = cast(UOp, result.value)
                self._fired(top.rule.__name__, top.element.tensor, answer)
                continue
            answer = self._done.get(wanted)
            if answer is None:
                stack.append(self._started(wanted))
        return cast(UOp, answer)

    def _started(self, e: Element) -> _Started:
        rule = self._rule(e.tensor)
        return _Started(e, rule, rule(self, e))

    def _rule(self, tensor: UOp) -> Rule:
        if 0 in tensor.shape:
            return Lowering.empty_as_zero
        if self._stored(tensor) is not None:
            return Lowering.load_from_memory
        if tensor.op not in RULES:
            raise UnsupportedError(f"rangeify: {tensor.op.name} in a tensor graph")
        return RULES[tensor.op]

    def empty_as_zero(self, e: Element) -> Steps:
        """An empty tensor has no element: code that reads one never runs."""
        yield from ()
        return const(0, e.tensor.dtype)

    def load_from_memory(self, e: Element) -> Steps:
        """A LOAD of the buffer of a value that is stored, or of an input."""
        yield from ()
        memory = self.param(cast(UOp, self._stored(e.tensor)), e.tensor.shape)
        place = UOp(Op.INDEX, memory, self.flat(e.at, e.tensor.shape))
        if e.gate is None:
            return UOp(Op.LOAD, place)
        return self.simplify(UOp(Op.LOAD, place, const(0, e.tensor.dtype), e.gate))

    def compute_on_elements(self, e: Element) -> Steps:
        """An elementwise op on the elements of its operands."""
        sources = []
        for s in e.tensor.src:
            sources.append((yield Element(s, broadcast_index(e.at, s.shape, ZERO), e.gate)))
        return UOp(e.tensor.op, *sources, arg=e.tensor.arg)

    def keep_number(self, e: Element) -> Steps:
        """A constant, or a variable, which the kernel takes as an argument."""
        yield from ()
        return e.tensor

    def drop_marker(self, e: Element) -> Steps:
        """A marker has the elements of its operand."""
        return (yield Element(e.tensor.src[0], e.at, e.gate))

    def load_where_gate(self, e: Element) -> Steps:
        """LOAD(buf, alt, gate) of tensors. A false gate accesses nothing (D-052)."""
        u = e.tensor
        if len(u.src) < 3:
            return (yield Element(u.src[0], e.at, e.gate))
        gate = yield Element(u.src[2], e.at, e.gate)
        alt = yield Element(u.src[1], e.at, e.gate)
        read = yield Element(u.src[0], e.at, self.simplify(only_where(e.gate, gate)))
        return UOp(Op.WHERE, gate, read, alt)

    def permute_into_index(self, e: Element) -> Steps:
        """INDEX(PERMUTE(T, pi), i...) is INDEX(T, j...) with j[pi[k]] = i[k]."""
        order = arg_of(e.tensor, PermuteArg).order
        at = list(e.at)
        for k, axis in enumerate(order):
            at[axis] = e.at[k]
        return (yield Element(e.tensor.src[0], tuple(at), e.gate))

    def flip_into_index(self, e: Element) -> Steps:
        """A flipped axis counts down."""
        flags = arg_of(e.tensor, FlipArg).flags
        at = tuple(
            self.alu(Op.SUB, self.alu(Op.SUB, self.size(dim), ONE), i) if flipped else i
            for i, dim, flipped in zip(e.at, e.tensor.shape, flags, strict=True)
        )
        return (yield Element(e.tensor.src[0], at, e.gate))

    def reshape_into_index(self, e: Element) -> Steps:
        """The index in the operand of the same row-major position."""
        old, new = e.tensor.src[0].shape, e.tensor.shape
        return (yield Element(e.tensor.src[0], self.reshaped(e.at, new, old), e.gate))

    def expand_into_index(self, e: Element) -> Steps:
        """A repeated axis has one element, at 0."""
        source = e.tensor.src[0]
        at = broadcast_index(e.at, source.shape, ZERO)
        # A symbolic size is 1 or that of the result, which the variables decide.
        repeated = [
            self.alu(Op.MOD, i, self.divisor(dim)) if isinstance(dim, UOp) and dim is not new else i
            for i, dim, new in zip(at, source.shape, e.tensor.shape, strict=True)
        ]
        return (yield Element(source, tuple(repeated), e.gate))

    def shrink_into_index(self, e: Element) -> Steps:
        """The offset is added to the index."""
        offsets = self.offsets(e.tensor.src[1])
        at = tuple(self.alu(Op.ADD, *pair) for pair in zip(e.at, offsets, strict=True))
        return (yield Element(e.tensor.src[0], at, e.gate))

    def pad_as_validity(self, e: Element) -> Steps:
        """Zero outside; the source is read only inside, since outside it has no address."""
        source, offsets = e.tensor.src[0], self.offsets(e.tensor.src[1])
        inside: UOp | None = None
        at = tuple(self.alu(Op.SUB, *pair) for pair in zip(e.at, offsets, strict=True))
        for i, dim, outer in zip(at, source.shape, e.tensor.shape, strict=True):
            if dim != outer:
                inside = self.both(inside, self.alu(Op.CMPLT, index_const(-1), i))
                inside = self.both(inside, self.alu(Op.CMPLT, i, self.size(dim)))
        zero = const(0, e.tensor.dtype)
        if inside is None or truth(inside) is True:
            return (yield Element(source, at, e.gate))
        if truth(inside) is False:
            return zero
        value = yield Element(source, at, self.both(e.gate, inside))
        return UOp(Op.WHERE, inside, value, zero)

    def index_by_elements(self, e: Element) -> Steps:
        """Indices are data. They are not read where the gate is false: there the index is 0."""
        source, *indices = e.tensor.src
        at, used = [], 0
        for i in indices:
            value = yield Element(i, e.at[used : used + len(i.shape)], e.gate)
            value = as_dtype(value, dtypes.index)
            if e.gate is not None and value.op is not Op.CONST:
                value = UOp(Op.WHERE, e.gate, value, ZERO)
            at.append(self.simplify(value))
            used += len(i.shape)
        return (yield Element(source, (*at, *e.at[used:]), e.gate))

    def stack_as_choice(self, e: Element) -> Steps:
        """The element of the operand that the first index chooses."""
        which, *rest = e.at
        parts = e.tensor.src
        if not parts:
            return const(0, e.tensor.dtype)
        if (position := int_value(which)) is not None:
            return (yield Element(parts[position], tuple(rest), e.gate))
        result = yield Element(parts[-1], tuple(rest), e.gate)
        for k in reversed(range(len(parts) - 1)):
            part = yield Element(parts[k], tuple(rest), e.gate)
            is_other = self.alu(Op.CMPNE, which, index_const(k))
            result = UOp(Op.WHERE, is_other, result, part)
        return result

    def reduce_over_ranges(self, e: Element) -> Steps:
        """A REDUCE of scalars over a new RANGE for each axis that has more than one element."""
        arg = arg_of(e.tensor, ReduceArg)
        if len(e.tensor.src) > 1:
            raise UnsupportedError("rangeify: a REDUCE over RANGEs in a tensor graph")
        source = e.tensor.src[0]
        if 0 in source.shape:
            return identity(arg.op, e.tensor.dtype)
        at = list(e.at)
        for axis in arg.axes:
            at[axis] = self.range(source.shape[axis], AxisType.REDUCE)
        value = yield Element(source, tuple(at), e.gate)
        ranges = [at[axis] for axis in arg.axes if at[axis] is not ZERO]
        return UOp(Op.REDUCE, value, *ranges, arg=ReduceArg(arg.op)) if ranges else value

    def bitcast_as_bits(self, e: Element) -> Steps:
        """The bits of an element; shifts where the sizes differ."""
        old, new = e.tensor.src[0].dtype, e.tensor.dtype
        if old.itemsize == new.itemsize:
            value = yield Element(e.tensor.src[0], e.at, e.gate)
            return UOp(Op.BITCAST, value, arg=e.tensor.arg)
        return (yield from (self._bytes_out if old.itemsize > new.itemsize else self._bytes_in)(e))

    def address_in_memory(self, e: Element) -> Steps:
        """The address of the first element of a view, found in the memory below."""
        place = e.tensor.src[0]
        at, byte = (ZERO,) * len(place.shape), ZERO
        if 0 in place.shape:
            place = base_of(place)
            at = (ZERO,) * len(place.shape)
        while (buffer := self._stored(place)) is None:
            source = place.src[0]
            if place.op is Op.BITCAST and (ratio := source.dtype.itemsize // place.dtype.itemsize):
                part = self.alu(Op.MOD, at[-1], index_const(ratio)) if at else ZERO
                size = index_const(place.dtype.itemsize)
                byte = self.alu(Op.ADD, byte, self.alu(Op.MUL, part, size))
            steps = RULES[place.op](self, Element(place, at, e.gate))
            wanted = next(steps, None)
            while wanted is not None and wanted.tensor is not source:
                wanted = steps.send((yield wanted))
            if wanted is None or wanted.gate is not e.gate:
                raise lacking("GETADDR.n1", "an element that PAD may have added", place)
            place, at = source, wanted.at
        memory = self.param(buffer, place.shape)
        flat = ZERO if 0 in place.shape else self.flat(at, place.shape)
        if any(isinstance(dim, UOp) for dim in e.tensor.src[0].shape):
            # A view without elements has the address of its memory.
            is_filled = self.alu(Op.CMPLT, ZERO, self.product(e.tensor.src[0].shape))
            flat, byte = (self.alu(Op.WHERE, is_filled, x, ZERO) for x in (flat, byte))
        address = UOp(Op.GETADDR, UOp(Op.INDEX, memory, flat), arg=e.tensor.arg)
        if byte is ZERO:
            return address
        return UOp(Op.ADD, address, as_dtype(byte, address.dtype))

    def _bytes_out(self, e: Element) -> Steps:
        """BITCAST to a smaller dtype: a part of the bits of an element, little-endian."""
        source, new = e.tensor.src[0], e.tensor.dtype
        wide, narrow = unsigned(source.dtype), unsigned(new)
        ratio = index_const(source.dtype.itemsize // new.itemsize)
        at = (*e.at[:-1], self.alu(Op.IDIV, e.at[-1], ratio))
        value = yield Element(source, at, e.gate)
        part = self.alu(Op.MUL, self.alu(Op.MOD, e.at[-1], ratio), index_const(narrow.bits))
        shifted = UOp(Op.SHR, bits_as(value, wide), as_dtype(part, wide))
        return bits_as(as_dtype(shifted, narrow), new)

    def _bytes_in(self, e: Element) -> Steps:
        """BITCAST to a wider dtype: the bits of several elements, little-endian."""
        source, new = e.tensor.src[0], e.tensor.dtype
        wide, narrow = unsigned(new), unsigned(source.dtype)
        ratio = new.itemsize // source.dtype.itemsize
        first = self.alu(Op.MUL, e.at[-1], index_const(ratio))
        parts = []
        for k in range(ratio):
            at = (*e.at[:-1], self.alu(Op.ADD, first, index_const(k)))
            value = yield Element(source, at, e.gate)
            part = as_dtype(bits_as(value, narrow), wide)
            parts.append(UOp(Op.SHL, part, const(k * narrow.bits, wide)) if k else part)
        return bits_as(reduce(partial(UOp, Op.OR), parts), new)

    def size(self, dim: int | UOp) -> UOp:
        """A size as an index: a constant, or computed from variables."""
        return self.simplify(dim) if isinstance(dim, UOp) else index_const(dim)

    def offsets(self, operand: UOp) -> list[UOp]:
        """The sizes in a shape or offset operand."""
        return [self.simplify(dim) for dim in operand.src]

    def product(self, shape: Sizes) -> UOp:
        """The number of elements of a shape."""
        return self.simplify(iterations(map(index, shape)))

    def divisor(self, dim: int | UOp) -> UOp:
        """A size to divide by, at least 1: an outer loop may divide although an inner one never
        runs.
        """
        return self.alu(Op.MAX, self.size(dim), index_const(1))

    def range(self, bound: int | UOp, axis_type: AxisType) -> UOp:
        """A new RANGE; the constant 0 for a loop of one iteration."""
        number = self.size(bound)
        if number is ONE:
            return ZERO
        self._ranges += 1
        return UOp(Op.RANGE, number, arg=RangeArg(self._ranges - 1, axis_type))

    def flat(self, at: Index, shape: Sizes) -> UOp:
        """The row-major position of an index. In an empty shape it is the counter of a loop that
        never runs.
        """
        if 0 in shape:
            return at[shape.index(0)]
        if (at, shape) not in self._flat:
            position = ZERO
            for i, dim in zip(at, shape, strict=True):
                if position is not ZERO and dim != 1:
                    position = self.alu(Op.MUL, position, self.size(dim))
                if i is not ZERO:
                    position = i if position is ZERO else self.alu(Op.ADD, position, i)
            self._flat[at, shape] = position
        return self._flat[at, shape]

    def unflat(self, position: UOp, shape: Sizes) -> Index:
        """The index at a row-major position."""
        at, below = [], ONE
        for axis in reversed(range(len(shape))):
            digit, divisor = self.alu(Op.IDIV, position, below), self.divisor(shape[axis])
            # The first digit is the whole quotient, which the simplifier knows of numbers alone.
            if axis or divisor.op is Op.CONST:
                digit = ZERO if divisor is ONE else self.alu(Op.MOD, digit, divisor)
            at.append(digit)
            below = self.alu(Op.MUL, below, divisor)
        return tuple(reversed(at))

    def alu(self, op: Op, *src: UOp) -> UOp:
        """An op on indices or conditions, simplified."""
        return self.simplify(UOp(op, *src))

    def reshaped(self, at: Index, shape: Sizes, to: Sizes) -> Index:
        """An index in another shape. Equal leading dimensions need no arithmetic."""
        if (found := without_ones(at, shape, to, ZERO)) is not None:
            return found
        same = 0
        while same < min(len(shape), len(to)) and shape[same] == to[same]:
            same += 1
        return at[:same] + self.unflat(self.flat(at[same:], shape[same:]), to[same:])

    def both(self, a: UOp | None, b: UOp | None) -> UOp | None:
        """AND of two conditions; None is true."""
        found = both(a, b)
        return None if found is None else self.simplify(found)


def broadcast_index(at: tuple[T, ...], shape: Sizes, first: T) -> tuple[T, ...]:
    """The index into an operand of a broadcast: right-aligned, axes of size 1 at their first."""
    aligned = at[len(at) - len(shape) :]
    if 1 not in shape:
        return aligned
    return tuple(first if dim == 1 else i for i, dim in zip(aligned, shape, strict=True))


def without_ones(at: tuple[T, ...], shape: Sizes, to: Sizes, first: T) -> tuple[T, ...] | None:
    """An index in another shape that differs in axes of size 1 alone; else None."""
    if [d for d in shape if d != 1] != [d for d in to if d != 1]:
        return None
    wide = (i for i, dim in zip(at, shape, strict=True) if dim != 1)
    return tuple(first if dim == 1 else next(wide) for dim in to)


def unsigned(dtype: DType) -> DType:
    """The unsigned integer of the size of a dtype."""
    return DTYPES[f"uint{8 * dtype.itemsize}"]


Rule = Callable[[Lowering, Element], Steps]


RULES: Mapping[Op, Rule] = {
    Op.CONST: Lowering.keep_number,
    Op.PARAM: Lowering.keep_number,
    Op.PERMUTE: Lowering.permute_into_index,
    Op.FLIP: Lowering.flip_into_index,
    Op.RESHAPE: Lowering.reshape_into_index,
    Op.EXPAND: Lowering.expand_into_index,
    Op.SHRINK: Lowering.shrink_into_index,
    Op.PAD: Lowering.pad_as_validity,
    Op.INDEX: Lowering.index_by_elements,
    Op.STACK: Lowering.stack_as_choice,
    Op.BITCAST: Lowering.bitcast_as_bits,
    Op.REDUCE: Lowering.reduce_over_ranges,
    Op.LOAD: Lowering.load_where_gate,
    Op.GETADDR: Lowering.address_in_memory,
    **dict.fromkeys(ops_of("marker"), Lowering.drop_marker),
    **dict.fromkeys(ELEMENTWISE, Lowering.compute_on_elements),
}
"""The rule by which an element of each op is lowered."""
LOWER = tuple(
    dict.fromkeys(
        rule.__name__
        for rule in (Lowering.empty_as_zero, Lowering.load_from_memory, *RULES.values())
    )
)
"""The names of the rules. A rule fires with the tensor whose element it lowers, and its scalar."""
