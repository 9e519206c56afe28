"""The stage rangeify: splits the function into kernels, and lowers each to scalars over RANGEs.

A value is stored between kernels only if computing it again costs more than a store and its loads
(`split`). So the ops before and after a fold are in its kernel. Views of inputs are never stored.
In a kernel movement ops are index arithmetic, and PAD is a gate (`lower`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from uop.compiler.build import ZERO
from uop.compiler.loops import grouped, in_loops
from uop.compiler.rewriting.rewrite import Fired, Rewriter, unobserved
from uop.compiler.rewriting.simplify import SIMPLIFY
from uop.compiler.stages.order import Order, free_slots, temporary
from uop.compiler.stages.rangeify.blocks import BLOCKS, in_blocks
from uop.compiler.stages.rangeify.lower import LOWER, Lowering
from uop.compiler.stages.rangeify.split import Kernel, split
from uop.compiler.stages.stage import Stage
from uop.compiler.validity import Validity
from uop.spec.args import AxisType, BufferArg, GetTupleArg, ParamArg, PermuteArg, arg_of
from uop.spec.graph import base_of, outside, replaced, slot_of, written_by
from uop.spec.kernel.forms import RANGED
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import is_size, is_variable, variables_of
from uop.spec.uop import UOp


def rangeify(root: UOp, fired: Fired = unobserved) -> UOp:
    """SINK(CALL(SINK(END(GROUP(STORE(INDEX(PARAM_k, i), v_k)...), r)...), buffers...)...)."""
    order = outside(root)
    slots = free_slots(order)
    calls, simplify, validity = Order(), Rewriter(SIMPLIFY, fired), Validity()
    stores: dict[UOp, list[UOp]] = {}
    for u in order:
        if u.op is Op.STORE:
            stores.setdefault(u.src[1].src[0], []).append(u)
    effects: list[UOp] = []
    for u in order:
        if u.op is Op.CALL:
            passed = [*map(_passed, u.src[1:])]
            effects.append(calls.call(u.src[0], passed, [passed[k] for k in written_by(u)]))
        elif u.op is Op.STORE and u.src[1].src[0] in stores:
            function = u.src[1].src[0]
            own = variables_of(function.src[0])
            body = replaced(function.src[0], {v: function.src[1 + slot_of(v)] for v in own})
            # An INVALID element of a result is UNSPECIFIED, so any value may be stored there.
            plain = UOp(Op.TUPLE, *(validity.split(v).value for v in body.src))
            values = [_as_folded(v) for v in in_blocks(plain, fired).src]
            outputs = [
                (base_of(store.src[0]), values[arg_of(store.src[1], GetTupleArg).idx])
                for store in stores.pop(function)
            ]
            arguments = [*map(_passed, function.src[1:])]
            effects += _Kernels(outputs, arguments, simplify, calls, slots, fired).effects()
    return UOp(Op.SINK, *effects)


def _as_folded(u: UOp) -> UOp:
    """A result without its last views, if they keep the order of its elements and it has folds: it
    is stored in the shape of the folds, since loops over another shape would divide.
    """
    v = u
    while v.op is Op.RESHAPE or (v.op is Op.PERMUTE and _keeps_order(v)):
        v = v.src[0]
    return v if v is not u and any(w.op is Op.REDUCE for w in v.toposort()) else u


def _keeps_order(u: UOp) -> bool:
    """Whether a PERMUTE moves axes of size 1 alone."""
    moved = [axis for axis in arg_of(u, PermuteArg).order if u.src[0].shape[axis] != 1]
    return moved == sorted(moved)


@dataclass(slots=True)
class _Kernels:
    """Builds the kernels of a FUNCTION, in an order in which they may run."""

    outputs: list[tuple[UOp, UOp]]
    inputs: Sequence[UOp]
    """The BUFFER of each argument."""
    simplify: Rewriter
    calls: Order
    slots: Iterator[int]
    """The slots of temporaries."""
    fired: Fired
    _targets: dict[UOp, Sequence[UOp]] = field(default_factory=dict)
    """The BUFFERs that hold each value of a kernel."""
    _home: dict[UOp, UOp] = field(default_factory=dict)
    """The BUFFER that each stored value is read from."""

    def effects(self) -> list[UOp]:
        """Call the kernels; return the CALLs that write the outputs."""
        copies: list[tuple[UOp, UOp]] = []
        targets: dict[UOp, list[UOp]] = {}
        for target, value in self.outputs:
            place = target
            if target in self.inputs:
                # Other kernels may still read the input: write a temporary, and copy it at the end.
                place = self._temporary(value)
                copies.append((target, place))
            targets.setdefault(value, []).append(place)
        found = split([value for _, value in self.outputs])
        for kernel in found.kernels:
            for u in kernel.values:
                places = targets.get(u) or [self._temporary(u)]
                self._targets[u] = places
                if u in found.stored:
                    self._home[u] = places[0]
            self._kernel(kernel)
        for target, aside in copies:
            self._copy(target, aside)
        return [*dict.fromkeys(self.calls.writer[target] for target, _ in self.outputs)]

    def _temporary(self, value: UOp) -> UOp:
        device = self.outputs[0][0].device
        return temporary(next(self.slots), value.dtype, value.shape, device)

    def _copy(self, target: UOp, aside: UOp) -> None:
        """Add a kernel that copies a temporary over an input, after all readers of the input."""
        copied = UOp(Op.CONTIGUOUS, aside)
        (kernel,) = split([copied]).kernels
        self._targets[copied] = [target]
        self._kernel(kernel)

    def _kernel(self, kernel: Kernel) -> None:
        """Add a kernel that computes values into BUFFERs: parallel loops, and in one of rows loops
        inside for the elements.
        """

        def stored(u: UOp) -> UOp | None:
            if u in self._home and u not in kernel.values:
                return self._home[u]
            if u.op is Op.PARAM and not is_variable(u):
                return self.inputs[slot_of(u)]
            return u if u.op in (Op.BINARY, Op.BUFFER) else None

        lowering = Lowering(stored, self.simplify, self.fired)
        loops = {x: d for x, d in zip(kernel.loops, kernel.shape, strict=True) if x is not None}
        rows = {x: lowering.range(loops[x], AxisType.LOOP) for x in loops if x in kernel.outer}
        inner = {x: lowering.range(loops[x], AxisType.REDUCE) for x in loops if x not in rows}
        ranges = rows | inner
        targets = [(u, place) for u in kernel.values for place in self._targets[u]]
        memory = [lowering.param(place, u.shape) for u, place in targets]
        effects: list[UOp] = []
        of_rows: list[UOp] = []
        for (u, _), param in zip(targets, memory, strict=True):
            at = tuple(ZERO if x is None else ranges[x] for x in kernel.values[u])
            place = UOp(Op.INDEX, param, lowering.flat(at, u.shape))
            store = UOp(Op.STORE, place, lowering.element(u, at))
            (effects if inner.keys() <= set(kernel.values[u]) else of_rows).append(store)
        if effects:
            of_rows.insert(0, in_loops(grouped(effects), inner.values()))
        body = lowering.simplify(UOp(Op.SINK, in_loops(grouped(of_rows), rows.values())))
        passed = lowering.buffers[: len(targets)]
        self.calls.call(*_with_variables(body, lowering.buffers), passed)


def _with_variables(body: UOp, buffers: Sequence[UOp]) -> tuple[UOp, list[UOp]]:
    """A kernel and its arguments, which end with the variables that it depends on."""
    of = variables_of(body)
    own = {
        v: UOp(Op.PARAM, *v.src, arg=replace(arg_of(v, ParamArg), slot=slot))
        for slot, v in enumerate(of, len(buffers))
    }
    return body.substitute(own), [*buffers, *of]


def _passed(argument: UOp) -> UOp:
    """An argument of a kernel: a size, or the BUFFER of a location, since kernels read memory."""
    if is_size(argument):
        return argument
    base = base_of(argument)
    if base.op is not Op.PARAM:
        return base
    arg = arg_of(base, ParamArg)
    return UOp(Op.BUFFER, *base.src, arg=BufferArg(arg.slot, arg.dtype, arg.device))


STAGE = Stage(
    "rangeify",
    lambda u, _, fired: rangeify(u, fired),
    lambda _: RANGED,
    lambda _: (*BLOCKS.names, *LOWER, *SIMPLIFY.names),
)
