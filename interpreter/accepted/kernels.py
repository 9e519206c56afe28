"""Compute the accepted contents of the buffers that kernels write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from uop.interpreter.accepted.apply import elementwise
from uop.interpreter.accepted.cells import SetCells, with_all_masks
from uop.interpreter.accepted.liberties import is_relaxed, read_terms
from uop.interpreter.accepted.result import Accepted, as_output, is_reference, narrowed, widens
from uop.interpreter.accepted.rules.choices import where
from uop.interpreter.accepted.rules.folds import Trees, folded
from uop.interpreter.accepted.rules.matrices import fragments_in_warps
from uop.interpreter.accepted.sets import Sets, points, somewhere, together, without
from uop.interpreter.kernel.buffers import Addresses, Buffer, Buffers, Registers
from uop.interpreter.kernel.domain import MEANINGS, Access, Arrays
from uop.interpreter.kernel.lanes import Lanes, broadcast
from uop.interpreter.kernel.launch import calls_of, launch
from uop.interpreter.values import Value
from uop.spec.args import ReduceArg, arg_of
from uop.spec.dtype import DType
from uop.spec.errors import UnsupportedError
from uop.spec.graph import slot_of
from uop.spec.latitude import Profile
from uop.spec.ops.names import Op

if TYPE_CHECKING:
    from uop.spec.uop import UOp

Held = dict[Buffer, SetCells]


def accepted_of_kernels(
    root: UOp, inputs: Mapping[UOp, Value], profile: Profile
) -> tuple[Accepted, ...]:
    """Return the accepted final contents of each buffer that kernels store to, by slot order.

    Raises UnsupportedError where an index, the gate of an IF or a number of iterations has more
    than one accepted value.
    """
    buffers, held = Buffers(inputs), Held()
    with np.errstate(all="ignore"):
        for body, arguments in calls_of(root, buffers):
            launch_accepted(body, arguments, buffers.addresses, held, profile)
    written, result = buffers.written(), []
    for u, buffer in sorted(buffers.stored_to().items(), key=lambda stored: slot_of(stored[0])):
        sets = held[buffer].held() if buffer in held else None
        shaped = sets and sets.map(lambda a, u=u: a.reshape(u.shape))  # type: ignore[misc]
        result.append(as_output(u, profile, narrowed(u.dtype, written[slot_of(u)], shaped)))
    return tuple(result)


def launch_accepted(
    body: UOp, arguments: list[Buffer], addresses: Addresses, held: Held, profile: Profile
) -> None:
    """Run the body of a CALL over its arguments and the sets that they hold."""
    if body.op is Op.CUSTOMFUNCTION and any(a in held for a in arguments):
        raise UnsupportedError("CUSTOMFUNCTION of a buffer whose contents are not certain")
    launch(body, arguments, addresses, partial(AcceptedValues, held=held, profile=profile))


class AcceptedValues:
    """The domain of accepted values of one launch under a profile."""

    def __init__(self, body: UOp, lanes: Lanes, *, held: Held, profile: Profile) -> None:
        self._lanes, self._held, self._profile = lanes, held, profile
        self._arrays, self._trees = Arrays(body, lanes), Trees(body, profile)
        self._cells: dict[Buffer | Registers, SetCells] = {b: c.copied() for b, c in held.items()}
        """The sets in memory; those of buffers outlive the launch."""

    def finish(self) -> None:
        self._held.update((b, c) for b, c in self._cells.items() if isinstance(b, Buffer))

    def lift(self, u: UOp, value: Value) -> Accepted:
        return Accepted(u.dtype, value)

    def reference(self, value: Accepted) -> Value:
        return value.value

    def certain(self, value: Accepted, what: str) -> Value:
        if value.sets is not None:
            raise UnsupportedError(f"accepted sets of a kernel where {what} is not certain")
        return value.value

    def possible(self, gate: Accepted) -> Value:
        if gate.sets is None:
            return gate.value
        if somewhere(without(gate.sets.any, gate.value.unspecified)) is not None:
            raise UnsupportedError("accepted sets of a kernel where a gate may be UNSPECIFIED")
        return Value(gate.sets.hi, None, gate.value.unspecified)

    def result(self, u: UOp, operands: list[Accepted]) -> Accepted:
        values = [a.value for a in operands]
        value = self._arrays.result(u, values)
        wider = any(a.sets for a in operands) or u.op is Op.WMMA
        if not wider and not widens(u, self._profile, values, value):
            return Accepted(u.dtype, value)
        return _narrowed(u, value, self._sets(u, operands))

    def _sets(self, u: UOp, operands: list[Accepted]) -> Sets:
        sets = [a.spread for a in operands]
        if u.declaration.is_elementwise or u.op is Op.BITCAST:
            return self._elementwise(u, sets)
        if u.op is Op.REDUCE:
            return self._reduced(u, sets[0])
        if u.op is Op.WMMA:
            return fragments_in_warps(u, sets, self._lanes.axes)
        if u.op is Op.AFTER:
            return sets[0]
        move = partial(MEANINGS[u.op], self._lanes, u)
        if u.op is Op.STACK:
            full = [with_all_masks(s) for s in sets]
            return together(full, lambda parts: move([Value(p) for p in parts]).data)
        if u.op in (Op.INDEX, Op.RESHAPE, Op.EXPAND):
            indices = [self.certain(i, "an index") for i in operands[1:]]
            return with_all_masks(sets[0]).map(lambda t: move([Value(t), *indices]).data)
        raise UnsupportedError(f"accepted sets of {u.op.name} in a kernel, of uncertain operands")

    def _elementwise(self, u: UOp, operands: list[Sets]) -> Sets:
        ranks, rank = [len(s.shape) for s in u.src], len(u.shape)
        if u.op is Op.BITCAST:
            wide, own = operands, operands[0].lo.shape
            shape = (*own[:-1], u.shape[-1]) if u.shape else own
        else:
            wide = self._raised(operands, ranks, rank)
            shape = broadcast(*(s.lo.shape for s in wide))
        node: Any = SimpleNamespace(
            op=u.op, dtype=u.dtype, shape=shape, src=u.src, arg=u.arg, declaration=u.declaration
        )
        result = elementwise(node, self._profile, *wide)
        return self._trees.regrouped(
            u, operands, result, lambda k, s: self._raised([s], [ranks[k]], rank)[0]
        )

    def _raised(self, sets: Sequence[Sets], ranks: Sequence[int], to: int) -> list[Sets]:
        """Insert axes so that sets of `ranks` axes have `to` of them."""
        return [
            s.map(lambda a, own=own: self._lanes.raised(a, own, to))  # type: ignore[misc]
            for s, own in zip(sets, ranks, strict=True)
        ]

    def _reduced(self, u: UOp, t: Sets) -> Sets:
        terms = t.map(lambda a: self._lanes.terms(u, a))
        if is_relaxed(self._profile):
            terms = read_terms(u, self._profile, terms)
        sums = folded(arg_of(u, ReduceArg).op, u.dtype, self._profile, terms)
        return sums.map(lambda a: self._lanes.keepdims(u, a))

    def load(self, access: Access[Accepted], alt: Accepted | None) -> Accepted:
        """Read memory; where the gate may be true or false, the alternative is accepted too."""
        u, gate = access.node, access.gate
        value = self._arrays.load(_by_reference(access), None if alt is None else alt.value)
        cells = self._cells.get(access.memory)
        if cells is None and (gate is None or alt is None or not (gate.sets or alt.sets)):
            return Accepted(u.dtype, value)
        if cells is None:
            sets = points(access.memory.read(access.place), u.dtype.is_float)
        else:
            sets = cells.read(access.place)
        if gate is not None and alt is not None:
            sets = self._either(u, gate, sets, alt.spread)
        return _narrowed(u, value, sets)

    def store(self, access: Access[Accepted], value: Accepted) -> None:
        gate = access.gate
        if value.sets is not None or (gate is not None and gate.sets is not None):
            self._cells_of(access.memory, value.dtype)
        self._arrays.store(_by_reference(access), value.value)
        cells = self._cells.get(access.memory)
        if cells is None:
            return
        place, sets = access.place, value.spread
        if gate is not None and gate.sets is not None:
            place = place.over(sets.lo.shape)
            sets = self._either(access.node, gate, sets, cells.read(place))
        cells.write(place, sets)

    def add(self, access: Access[Accepted], value: Accepted) -> None:
        """Add terms; a float sum is a REDUCE of the contents and all terms in any order."""
        memory, dtype = access.memory, value.dtype
        if dtype.is_float or value.sets is not None:
            self._cells_of(memory, dtype)
        self._arrays.add(_by_reference(access), value.value)
        cells = self._cells.get(memory)
        if cells is None:
            return
        if not isinstance(memory, Buffer):
            raise UnsupportedError("accepted sets of an ATOMICADD to a register")
        sets = value.spread
        place = access.place.over(sets.lo.shape)
        sets = sets.map(lambda a: np.broadcast_to(a, place.positions.shape))
        cells.add(place, sets, partial(folded, Op.ADD, dtype, self._profile))

    def _either(self, u: UOp, gate: Accepted, true: Sets, false: Sets) -> Sets:
        rank = len(u.src[0].shape)
        operands = (gate.spread, true, false)
        wide = self._raised(operands, (len(u.src[2].shape), rank, rank), rank)
        shape = broadcast(*(s.lo.shape for s in wide))
        spread = [s.map(lambda a: np.broadcast_to(a, shape)) for s in wide]
        return where(u, self._profile, *spread)

    def _cells_of(self, memory: Buffer | Registers, dtype: DType) -> SetCells:
        if memory not in self._cells:
            self._cells[memory] = SetCells(memory, is_float=dtype.is_float)
        return self._cells[memory]


def _by_reference(access: Access[Accepted]) -> Access[Value]:
    """Return the access of the reference, where an uncertain gate has its reference value."""
    place, gate = access.place, access.gate
    if gate is None:
        return Access(access.node, access.memory, place, None)
    if gate.sets is not None:
        place = replace(place, gate=np.asarray(place.gate & gate.value.data))
    return Access(access.node, access.memory, place, gate.value)


def _narrowed(u: UOp, value: Value, sets: Sets) -> Accepted:
    """Apply `narrowed` to a value that may have fewer lanes than its sets."""
    wide = value.map(lambda a: np.broadcast_to(a, sets.lo.shape))
    return Accepted(u.dtype, value, None if is_reference(sets, wide, u.dtype) else sets)
