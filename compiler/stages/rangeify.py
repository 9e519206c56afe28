"""The stage rangeify: splits the function into kernels, and lowers each to scalars over RANGEs.

Stored in memory are the outputs, every REDUCE, LOAD and CONTIGUOUS, and each value that is read at
more than one index and takes more than a few nodes to compute. So the kernels are linear in the
size of the graph, however often it uses its nodes. Views of inputs are never stored. Outputs of one
shape share a kernel if all that they need is stored before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from uop.compiler.rewrite import Fired, Rewriter, quietly
from uop.compiler.simplify import SIMPLIFY
from uop.compiler.stages.lower import Lowering
from uop.compiler.validity import Validity
from uop.spec.args import AxisType, BufferArg, GetTupleArg, ParamArg, arg_of
from uop.spec.graph import slot_of
from uop.spec.kernel.forms import ELEMENTWISE
from uop.spec.ops.names import SOURCES, VIEWS, Op
from uop.spec.registry import Shape, ops_of
from uop.spec.uop import UOp, dims
from uop.spec.walk import toposort

TEMPORARY = "temporary"
"""The tag of BUFFERs that pass values from one kernel to another."""

COSTLY = (Op.EXP2, Op.LOG2, Op.SIN, Op.POW, Op.THREEFRY)
READ_IN_PLACE = ELEMENTWISE | ops_of("marker") | {Op.LOAD}
"""Ops that read an operand of their shape at their own index."""
LIGHT = 8
"""A value of up to this many nodes is computed again rather than stored."""
HEAVY = LIGHT + 1
OUTPUTS = 16
"""The most values of a kernel: a device may limit its arguments and its code."""
STORED = (Op.REDUCE, Op.LOAD, Op.CONTIGUOUS)


def rangeify(root: UOp, fired: Fired = quietly) -> UOp:
    """SINK(CALL(SINK(END(GROUP(STORE(INDEX(PARAM_k, i), v_k)...), r)...), buffers...)...)."""
    if not root.src:
        return root
    function = root.src[0].src[1].src[0]
    validity = Validity()
    # An INVALID element of a result is UNSPECIFIED, so any value may be stored there.
    values = [validity.split(v).value for v in function.src[0].src]
    outputs = [(store.src[0], values[arg_of(store.src[1], GetTupleArg).idx]) for store in root.src]
    return _Kernels(outputs, function.src[1:], Rewriter(SIMPLIFY, fired)).program()


def stored_values(roots: Sequence[UOp]) -> set[UOp]:
    """The values that are stored in memory, besides the results."""
    order = toposort(roots, _operands)
    views: set[UOp] = set()
    for u in order:
        if u.op in SOURCES or (u.op in VIEWS and u.src[0] in views):
            views.add(u)
    weights = _weights(order, views)
    places = _places(order)
    stored: set[UOp] = set()
    # For each node the indices it is read at, numbered: one per reader and index of the reader.
    read_at: dict[UOp, set[int]] = {u: set() for u in order}
    numbers: dict[object, int] = {}
    of_shape: Counter[Shape] = Counter()
    for root in dict.fromkeys(roots):
        # Results that share a kernel are computed at one index.
        kernel = (root.shape, of_shape[root.shape] // OUTPUTS)
        read_at[root].add(numbers.setdefault(kernel, len(numbers)))
        of_shape[root.shape] += 1
    for u in reversed(order):
        if u in views:
            continue
        many = len(read_at[u]) > 1 and weights[u] > LIGHT and u not in places
        if u.op in STORED or many:
            stored.add(u)
            read_at[u] = {numbers.setdefault(u, len(numbers))}
        for at in read_at[u]:
            for position, s in enumerate(_operands(u)):
                for key in _reads(u, position, s, at):
                    read_at[s].add(
                        key if isinstance(key, int) else numbers.setdefault(key, len(numbers))
                    )
    return stored


def _places(order: Sequence[UOp]) -> set[UOp]:
    """The INDEXes and views that gated LOADs read through, which may be out of bounds elsewhere."""
    places: set[UOp] = set()
    for u in order:
        if u.op is Op.LOAD and len(u.src) == 3:
            place = u.src[0]
            while place.op is Op.INDEX or place.op in VIEWS:
                places.add(place)
                place = place.src[0]
    return places


def _weights(order: Sequence[UOp], views: set[UOp]) -> dict[UOp, int]:
    """The cost in nodes of an element of each, computed from stored values; HEAVY at most."""
    weights: dict[UOp, int] = {}
    for u in order:
        if u in views or u.op in STORED:
            weights[u] = 0
        else:
            own = HEAVY if u.op in COSTLY else 0 if u.op in VIEWS else 1
            weights[u] = min(own + sum(weights[s] for s in _operands(u)), HEAVY)
    return weights


def _operands(u: UOp) -> Sequence[UOp]:
    """The operands that are data, without shapes and offsets."""
    return u.src[:1] if u.op in VIEWS else u.src


def _reads(u: UOp, position: int, s: UOp, at: int) -> Iterable[object]:
    """Keys of the indices at which u reads an operand, if u is read at index number `at`; `at`
    itself for the same index.
    """
    if u.op in READ_IN_PLACE:
        return [at] if s.shape == u.shape else [(s.shape, at)]
    if u.op is Op.BITCAST:
        ratio = u.dtype.itemsize // s.dtype.itemsize
        return [at] if s.shape == u.shape else [(u, at, k) for k in range(max(ratio, 1))]
    if u.op is Op.INDEX and position:
        return [(u, at, position)]
    return [(u, at)]


@dataclass(slots=True)
class _Kernels:
    """Builds the kernels of a program, in an order in which they may run."""

    outputs: list[tuple[UOp, UOp]]
    arguments: tuple[UOp, ...]
    simplify: Rewriter
    calls: dict[UOp, UOp] = field(default_factory=dict)
    """The CALL that writes each BUFFER."""
    readers: dict[UOp, list[UOp]] = field(default_factory=dict)
    """The CALLs that read each input."""
    home: dict[UOp, UOp] = field(default_factory=dict)
    """The BUFFER of each stored value."""

    def program(self) -> UOp:
        inputs = [_buffer_of(a) for a in self.arguments]
        stored = stored_values([value for _, value in self.outputs])
        fresh = 1 + max(slot_of(b) for b in (*inputs, *(target for target, _ in self.outputs)))
        for target, value in self.outputs:
            if value in stored and value not in self.home and target not in inputs:
                self.home[value] = target
        for u in toposort((value for _, value in self.outputs), _operands):
            if u in stored:
                if u not in self.home:
                    self.home[u] = _temporary(fresh, u)
                    fresh += 1
                self._kernel({self.home[u]: u})
        effects, copies = [], []
        last: dict[Shape, dict[UOp, UOp]] = {}
        for target, value in self.outputs:
            if self.home.get(value) is target:
                effects.append(self.calls[target])
            elif target in inputs:
                # Other kernels may still read the input: write a temporary, and copy it at the end.
                aside = _temporary(fresh, value)
                fresh += 1
                self._kernel({aside: value})
                copies.append((target, aside))
            else:
                last.setdefault(value.shape, {})[target] = value
        effects += [self._kernel(dict(some)) for of in last.values() for some in _batched(of)]
        return UOp(Op.SINK, *effects, *(self._copy(*copy) for copy in copies))

    def _kernel(self, values: Mapping[UOp, UOp]) -> UOp:
        """Add a kernel that computes values of one shape into BUFFERs."""

        def stored(u: UOp) -> UOp | None:
            if u in self.home and self.home[u] not in values:
                return self.home[u]
            if u.op is Op.PARAM:
                return _buffer_of(self.arguments[slot_of(u)])
            return u if u.op is Op.BINARY else None

        return self._call(Lowering(stored, self.simplify), values)

    def _copy(self, target: UOp, aside: UOp) -> UOp:
        """Add a kernel that copies a temporary over an input, after all readers of the input."""
        body = Lowering(lambda u: aside if u is aside else None, self.simplify)
        return self._call(body, {target: UOp(Op.CONTIGUOUS, aside)})

    def _call(self, kernel: Lowering, values: Mapping[UOp, UOp]) -> UOp:
        shape = next(iter(values.values())).shape
        places = [kernel.param(target, shape) for target in values]
        at = tuple(kernel.range(dim, AxisType.LOOP) for dim in shape)
        position = kernel.flat(at, shape)
        stores = [
            UOp(Op.STORE, UOp(Op.INDEX, place, position), kernel.element(value, at))
            for place, value in zip(places, values.values(), strict=True)
        ]
        effect = UOp(Op.GROUP, *stores) if len(stores) > 1 else stores[0]
        for r in reversed(at):
            if r.op is Op.RANGE:
                effect = UOp(Op.END, effect, r)
        body = kernel.simplify(UOp(Op.SINK, effect))
        written, read = kernel.buffers[: len(values)], kernel.buffers[len(values) :]
        arguments = []
        for buffer in written:
            before = self.readers.get(buffer, [])
            arguments.append(UOp(Op.AFTER, buffer, *before) if before else buffer)
        arguments += [UOp(Op.AFTER, b, self.calls[b]) if b in self.calls else b for b in read]
        call = UOp(Op.CALL, body, *arguments)
        self.calls.update(dict.fromkeys(written, call))
        for buffer in read:
            self.readers.setdefault(buffer, []).append(call)
        return call


def _batched(values: Mapping[UOp, UOp]) -> Iterator[Sequence[tuple[UOp, UOp]]]:
    """At most OUTPUTS of them at a time."""
    items = list(values.items())
    for start in range(0, len(items), OUTPUTS):
        yield items[start : start + OUTPUTS]


def _buffer_of(argument: UOp) -> UOp:
    """The BUFFER of an input, since kernels read memory."""
    if argument.op is not Op.PARAM:
        return argument
    arg = arg_of(argument, ParamArg)
    return UOp(Op.BUFFER, *argument.src, arg=BufferArg(arg.slot, arg.dtype, arg.device))


def _temporary(slot: int, value: UOp) -> UOp:
    arg = BufferArg(slot, value.dtype, value.device)
    return UOp(Op.BUFFER, dims(value.shape), arg=arg, tag=TEMPORARY)
