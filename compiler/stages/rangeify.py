"""The stage rangeify: splits the function into kernels, and lowers each to scalars over RANGEs.

Stored in memory are the outputs, every REDUCE, LOAD and CONTIGUOUS, and each value that is read at
more than one index and takes more than a few nodes to compute. So the kernels are linear in the
size of the graph, however often it uses its nodes. Views of inputs are never stored. Outputs of one
shape share a kernel if all that they need is stored before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from uop.compiler.rewrite import Fired, Rewriter, quietly
from uop.compiler.simplify import SIMPLIFY
from uop.compiler.stages.contents import TEMPORARY
from uop.compiler.stages.lower import Lowering
from uop.compiler.validity import Validity
from uop.spec.args import AxisType, BufferArg, GetTupleArg, ParamArg, arg_of
from uop.spec.graph import LEAVES, base_of, outside, replaced, slot_of, views_of, written_by
from uop.spec.kernel.forms import ELEMENTWISE
from uop.spec.ops.names import SOURCES, VIEWS, Op
from uop.spec.properties.symbolic import is_size, is_variable, variables
from uop.spec.registry import Sizes, ops_of
from uop.spec.uop import UOp, dims
from uop.spec.walk import toposort

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
    order = outside(root)
    calls = _Calls(1 + max((slot_of(u) for u in order if u.op in LEAVES), default=-1))
    simplify, validity = Rewriter(SIMPLIFY, fired), Validity()
    stores: dict[UOp, list[UOp]] = {}
    for u in order:
        if u.op is Op.STORE:
            stores.setdefault(u.src[1].src[0], []).append(u)
    effects: list[UOp] = []
    for u in order:
        if u.op is Op.CALL:
            effects.append(calls.call(u.src[0], [*map(_passed, u.src[1:])], written_by(u)))
        elif u.op is Op.STORE and u.src[1].src[0] in stores:
            function = u.src[1].src[0]
            own = variables(function.src[0])
            body = replaced(function.src[0], {v: function.src[1 + slot_of(v)] for v in own})
            # An INVALID element of a result is UNSPECIFIED, so any value may be stored there.
            values = [validity.split(v).value for v in body.src]
            outputs = [
                (base_of(store.src[0]), values[arg_of(store.src[1], GetTupleArg).idx])
                for store in stores.pop(function)
            ]
            arguments = [*map(_passed, function.src[1:])]
            effects += _Kernels(outputs, arguments, simplify, calls).effects()
    return UOp(Op.SINK, *effects)


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
    of_shape: Counter[Sizes] = Counter()
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
    """The operands that are data, without shapes, offsets and memory."""
    if u.op is Op.GETADDR:
        return [i for view in views_of(u.src[0]) if view.op is Op.INDEX for i in view.src[1:]]
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
class _Calls:
    """The CALLs of a program so far, in an order in which they may run."""

    fresh: int
    """The next slot of a temporary."""
    writer: dict[UOp, UOp] = field(default_factory=dict)
    """The last CALL that writes each BUFFER."""
    readers: dict[UOp, list[UOp]] = field(default_factory=dict)
    """The CALLs that have read each BUFFER since."""

    def call(self, body: UOp, buffers: Sequence[UOp], written: Iterable[int]) -> UOp:
        """Call a kernel after the CALLs that it depends on; `written` are positions."""
        into = dict.fromkeys(buffers[k] for k in written)
        arguments = []
        for buffer in buffers:
            before = [self.writer[buffer]] if buffer in self.writer else []
            if buffer in into:
                before = self.readers.get(buffer) or before
            arguments.append(UOp(Op.AFTER, buffer, *before) if before else buffer)
        call = UOp(Op.CALL, body, *arguments)
        for buffer in dict.fromkeys(buffers):
            self.readers.setdefault(buffer, []).append(call)
        for buffer in into:
            self.writer[buffer], self.readers[buffer] = call, []
        return call

    def temporary(self, value: UOp) -> UOp:
        arg = BufferArg(self.fresh, value.dtype, value.device)
        self.fresh += 1
        return UOp(Op.BUFFER, dims(value.shape), arg=arg, tag=TEMPORARY)


@dataclass(slots=True)
class _Kernels:
    """Builds the kernels of a FUNCTION, in an order in which they may run."""

    outputs: list[tuple[UOp, UOp]]
    inputs: Sequence[UOp]
    """The BUFFER of each argument."""
    simplify: Rewriter
    calls: _Calls
    home: dict[UOp, UOp] = field(default_factory=dict)
    """The BUFFER of each stored value."""

    def effects(self) -> list[UOp]:
        """Call the kernels; return the CALLs that write the outputs."""
        inputs = self.inputs
        stored = stored_values([value for _, value in self.outputs])
        for target, value in self.outputs:
            if value in stored and value not in self.home and target not in inputs:
                self.home[value] = target
        for u in toposort((value for _, value in self.outputs), _operands):
            if u in stored:
                if u not in self.home:
                    self.home[u] = self.calls.temporary(u)
                self._kernel({self.home[u]: u})
        effects, copies = [], []
        last: dict[Sizes, dict[UOp, UOp]] = {}
        for target, value in self.outputs:
            if self.home.get(value) is target:
                effects.append(self.calls.writer[target])
            elif target in inputs:
                # Other kernels may still read the input: write a temporary, and copy it at the end.
                aside = self.calls.temporary(value)
                self._kernel({aside: value})
                copies.append((target, aside))
            else:
                last.setdefault(value.shape, {})[target] = value
        effects += [self._kernel(dict(some)) for of in last.values() for some in _batched(of)]
        return [*effects, *(self._copy(*copy) for copy in copies)]

    def _kernel(self, values: Mapping[UOp, UOp]) -> UOp:
        """Add a kernel that computes values of one shape into BUFFERs."""

        def stored(u: UOp) -> UOp | None:
            if u in self.home and self.home[u] not in values:
                return self.home[u]
            if u.op is Op.PARAM and not is_variable(u):
                return self.inputs[slot_of(u)]
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
        return self.calls.call(*_with_variables(body, kernel.buffers), range(len(values)))


def _with_variables(body: UOp, buffers: Sequence[UOp]) -> tuple[UOp, list[UOp]]:
    """A kernel and its arguments, which end with the variables that it depends on."""
    of = variables(body)
    own = {
        v: UOp(Op.PARAM, *v.src, arg=replace(arg_of(v, ParamArg), slot=slot))
        for slot, v in enumerate(of, len(buffers))
    }
    return body.substitute(own) if own else body, [*buffers, *of]


def _batched(values: Mapping[UOp, UOp]) -> Iterator[Sequence[tuple[UOp, UOp]]]:
    """At most OUTPUTS of them at a time."""
    items = list(values.items())
    for start in range(0, len(items), OUTPUTS):
        yield items[start : start + OUTPUTS]


def _passed(argument: UOp) -> UOp:
    """An argument of a kernel: a size, or the BUFFER of a location."""
    return argument if is_size(argument) else _buffer_of(base_of(argument))


def _buffer_of(argument: UOp) -> UOp:
    """The BUFFER of an input, since kernels read memory."""
    if argument.op is not Op.PARAM:
        return argument
    arg = arg_of(argument, ParamArg)
    return UOp(Op.BUFFER, *argument.src, arg=BufferArg(arg.slot, arg.dtype, arg.device))
