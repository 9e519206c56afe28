"""What kernels may leave in the buffers that they write: a launch with sets beside its values."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from uop.interpreter.accepted.apply import elementwise
from uop.interpreter.accepted.cells import SetCells, full, parts_of
from uop.interpreter.accepted.liberties import read_terms, takes
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.accepted.rules.choices import where
from uop.interpreter.accepted.rules.folds import folded
from uop.interpreter.accepted.rules.matrices import fragments_in_warps
from uop.interpreter.accepted.sets import Sets, points
from uop.interpreter.accepted.trees import Trees
from uop.interpreter.accepted.widening import is_reference, widens
from uop.interpreter.addresses import Addresses
from uop.interpreter.kernel.buffers import Buffer, Buffers, Registers
from uop.interpreter.kernel.lanes import indexed, raised, stacked
from uop.interpreter.kernel.launch import Kernel, launch
from uop.interpreter.kernel.program import call_by_name, run_calls
from uop.interpreter.kernel.schedule import Branch, Items, Loop
from uop.interpreter.numeric.storage import Mask
from uop.interpreter.values import Value
from uop.spec.args import ReduceArg
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.graph import slot_of
from uop.spec.latitude import Profile
from uop.spec.ops.names import Op

if TYPE_CHECKING:
    from uop.spec.uop import UOp

Held = dict[Buffer, SetCells]


def accepted_of_kernels(
    root: UOp, given: Mapping[UOp, Value], profile: Profile
) -> tuple[Accepted, ...]:
    """What each buffer that kernels store to may hold at the end, in the order of the slots.

    UnsupportedError where an index, the gate of an IF or a number of iterations is not certain.
    """
    buffers, held = Buffers(given), Held()
    with np.errstate(all="ignore"):
        run_calls(root, buffers, partial(_launch, held=held, profile=profile))
    stored = {slot_of(u): (u, buffer) for u, buffer in buffers.stored_to().items()}
    written = buffers.written()
    result = []
    for slot in sorted(written):
        u, buffer = stored[slot]
        sets = None
        if buffer in held:
            sets = held[buffer].held().map(lambda a, u=u: a.reshape(u.shape))  # type: ignore[misc]
            sets = None if is_reference(sets, written[slot], u.dtype) else sets
        result.append(Accepted(u.dtype, written[slot], sets))
    return tuple(result)


def _launch(
    body: UOp, arguments: list[Buffer], addresses: Addresses, *, held: Held, profile: Profile
) -> None:
    if body.op is not Op.CUSTOMFUNCTION:
        launch(
            body, arguments, addresses, None, partial(AcceptedKernel, held=held, profile=profile)
        )
        return
    if any(a in held for a in arguments):
        raise UnsupportedError("CUSTOMFUNCTION of a buffer whose contents are not certain")
    call_by_name(body, arguments)


class AcceptedKernel(Kernel):
    """A launch that follows what is not certain; nodes without sets have the reference alone."""

    def __init__(self, *args: Any, held: Held, profile: Profile, **options: Any) -> None:
        super().__init__(*args, **options)
        self._held, self._profile = held, profile
        self._trees = Trees(args[0], profile)
        self._cells: dict[Buffer | Registers, SetCells] = {}
        """What this launch has written, entered when it has come to its end."""
        self._sets: dict[UOp, Sets] = {}

    def run(self) -> None:
        self._cells.update((b, c.copied()) for b, c in self._held.items())
        super().run()
        written = ((b, c) for b, c in self._cells.items() if isinstance(b, Buffer))
        self._held.update(written)

    def _branch(self, branch: Branch) -> None:
        self._of(branch.gate)
        self._need_certain(branch.gate, "the gate of an IF")
        super()._branch(branch)

    def _loop(self, loop: Loop) -> None:
        self._need_certain(loop.range.src[0], "a number of iterations")
        super()._loop(loop)

    def _forget(self, items: Items) -> None:
        super()._forget(items)
        for item in items:
            if not isinstance(item, Loop | Branch):
                self._sets.pop(item, None)

    def _need_certain(self, u: UOp, what: str) -> None:
        if u in self._sets:
            raise UnsupportedError(f"accepted sets of a kernel where {what} is not certain")

    def _value(self, u: UOp) -> Value:
        value = super()._value(u)
        sets = self._widened(u, value)
        self._sets.pop(u, None)
        if sets is not None:
            self._sets[u] = sets
        return value

    def _widened(self, u: UOp, value: Value) -> Sets | None:
        """The sets of a node; None where they hold the reference alone."""
        sets = self._accepted(u, value)
        return None if sets is None or _is_alone(sets, value, u.dtype) else sets

    def _accepted(self, u: UOp, value: Value) -> Sets | None:
        if u.op is Op.LOAD:
            return self._loaded(u)
        if u.op is Op.WMMA:
            return self._multiplied(u)
        sources = [s for s in u.src if s.addrspace is None and s.dtype is not dtypes.void]
        if not any(s in self._sets for s in sources):
            if not u.src or u.src[0].addrspace is not None:
                return None
            if not widens(u, self._profile, [self._of(s) for s in u.src], value):
                return None
        return self._computed(u)

    def _computed(self, u: UOp) -> Sets | None:
        if u.declaration.is_elementwise or u.op is Op.BITCAST:
            return self._elementwise(u)
        if u.op is Op.REDUCE:
            return self._reduced(u)
        if u.op in (Op.AFTER, Op.NOOP, Op.PRECAST):
            return self._sets.get(u.src[0])
        if u.op is Op.STACK:
            rank = len(u.shape) - 1
            return _each(
                lambda *parts: stacked([Value(p) for p in parts], rank).data, *self._all(u)
            )
        if u.op is Op.INDEX:
            for i in u.src[1:]:
                self._need_certain(i, "an index")
            indices = [self._of(i) for i in u.src[1:]]
            return _each(lambda t: indexed(u, Value(t), indices).data, self._set_of(u.src[0]))
        raise UnsupportedError(f"accepted sets of {u.op.name} in a kernel, of uncertain operands")

    def _set_of(self, u: UOp) -> Sets:
        """The sets of an operand, on lanes as its value is."""
        value = self._of(u)
        return self._sets[u] if u in self._sets else _points(value, u.dtype)

    def _all(self, u: UOp) -> list[Sets]:
        return [self._set_of(s) for s in u.src]

    def _elementwise(self, u: UOp) -> Sets:
        rank, lanes = len(u.shape), len(self._axes)
        operands = self._all(u)
        if u.op is not Op.BITCAST:
            ranks = [len(s.shape) for s in u.src]
            operands = [
                s.map(lambda a, own=own: raised(a, own, rank, lanes))  # type: ignore[misc]
                for s, own in zip(operands, ranks, strict=True)
            ]
            shape = np.broadcast_shapes(*(s.lo.shape for s in operands))
        else:
            own = operands[0].lo.shape
            shape = (*own[:-1], u.shape[-1]) if u.shape else own
        node: Any = SimpleNamespace(
            op=u.op, dtype=u.dtype, shape=shape, src=u.src, arg=u.arg, declaration=u.declaration
        )
        result = elementwise(node, self._profile, *operands)

        def placed(k: int, s: Sets) -> Sets:
            return s.map(lambda a: raised(a, len(u.src[k].shape), rank, lanes))

        return self._trees.regrouped(u, self._all(u), result, placed)

    def _reduced(self, u: UOp) -> Sets | None:
        t = self._set_of(u.src[0])
        if u.src[1:] and not all(r in self._axis_of for r in u.src[1:]):
            return None
        terms = t.map(lambda a: self._terms(u, a))
        if takes(self._profile):
            terms = read_terms(u, self._profile, terms)
        sums = folded(cast(ReduceArg, u.arg).op, u.dtype, self._profile, terms)
        return sums.map(lambda a: self._kept(u, a))

    def _multiplied(self, u: UOp) -> Sets:
        return fragments_in_warps(u, self._all(u), self._axes)

    def _loaded(self, u: UOp) -> Sets | None:
        """What a memory may hold; where the gate may be true and false, that or alt."""
        self._need_certain_place(u.src[0])
        gate = u.src[2] if len(u.src) > 2 else None
        mask, rank = self._possible_gate(u, len(u.shape)), len(u.shape)
        memory, place = self.memory.place(u.src[0], mask, self._of)
        cells = self._cells.get(memory)
        if memory.size == 0:
            return self._sets.get(u.src[1]) if len(u.src) > 1 else None
        uncertain = gate in self._sets or (gate is not None and u.src[1] in self._sets)
        if cells is None and not uncertain:
            return None
        if gate in self._sets:
            self.memory.note(u, memory, place)
        held = _points(memory.read(place), u.dtype) if cells is None else cells.read(place)
        if gate is None:
            return held
        return self._chosen(u, gate, held, self._set_of(u.src[1]), rank)

    def _chosen(self, u: UOp, gate: UOp, a: Sets, b: Sets, rank: int) -> Sets:
        node: Any = SimpleNamespace(op=Op.WHERE, dtype=u.dtype)
        lanes, operands = len(self._axes), (self._set_of(gate), a, b)
        ranks = (len(gate.shape), rank, rank)
        wide = [
            s.map(lambda x, own=own: raised(x, own, rank, lanes))  # type: ignore[misc]
            for s, own in zip(operands, ranks, strict=True)
        ]
        shape = np.broadcast_shapes(*(s.lo.shape for s in wide))
        spread = [s.map(lambda x: np.broadcast_to(x, shape)) for s in wide]
        return where(node, self._profile, *spread)

    def _possible_gate(self, u: UOp, rank: int) -> Mask | None:
        """Where an access can happen."""
        gate = u.src[2] if len(u.src) > 2 else None
        if gate not in self._sets:
            return self._gate(u, rank)
        active = self._active
        if active is not None:
            active = raised(active, 0, rank, len(self._axes))
        sets = self._sets[gate]
        if sets.any is not None and sets.any.any():
            raise UnsupportedError("accepted sets of a kernel where a gate may be UNSPECIFIED")
        return sets.hi if active is None else sets.hi & active

    def _need_certain_place(self, location: UOp) -> None:
        while location.op is Op.AFTER:
            location = location.src[0]
        for i in location.src[1:] if location.op is Op.INDEX else ():
            self._of(i)
            self._need_certain(i, "an index")

    def _store(self, u: UOp) -> None:
        self._of(u.src[1])
        self._need_certain_place(u.src[0])
        rank = len(u.src[0].shape)
        gate = u.src[2] if len(u.src) > 2 else None
        mask = self._possible_gate(u, rank)
        memory, place = self.memory.place(u.src[0], mask, self._of)
        if u.src[1] in self._sets or gate in self._sets:
            self._cells_of(memory, u.src[1].dtype)
        cells = self._cells.get(memory)
        super()._store(u)
        if cells is None or not (mask is None or mask.any()):
            return
        sets = self._set_of(u.src[1])
        if gate in self._sets:
            place.need_distinct()
            self.memory.note(u, memory, place.over(sets.lo.shape))
            place = place.over(sets.lo.shape)
            sets = self._chosen(u, gate, sets, cells.read(place), rank)
        cells.write(place, sets)

    def _atomic_add(self, u: UOp) -> None:
        """Of floats a REDUCE of what stands there and all terms, in no order."""
        self._of(u.src[1])
        self._need_certain_place(u.src[0])
        if len(u.src) > 2:
            self._need_certain(u.src[2], "the gate of an ATOMICADD")
        gate, dtype = self._gate(u, len(u.src[0].shape)), u.src[1].dtype
        memory, place = self.memory.place(u.src[0], gate, self._of)
        if dtype.is_float or u.src[1] in self._sets:
            self._cells_of(memory, dtype)
        cells = self._cells.get(memory)
        super()._atomic_add(u)
        if cells is None or not (gate is None or gate.any()):
            return
        if not isinstance(memory, Buffer):
            raise UnsupportedError("accepted sets of an ATOMICADD to a register")
        sets = self._set_of(u.src[1])
        everywhere = tuple(a.size if a.is_always_open else 1 for a in self._axes)
        place = place.over(sets.lo.shape, (*everywhere, *(1,) * place.rank))
        sets = sets.map(lambda a: np.broadcast_to(a, place.positions.shape))
        cells.add(place, sets, partial(folded, Op.ADD, dtype, self._profile))

    def _cells_of(self, memory: Buffer | Registers, dtype: DType) -> SetCells:
        if memory not in self._cells:
            self._cells[memory] = SetCells(memory, is_float=dtype.is_float)
        return self._cells[memory]


def _points(value: Value, dtype: DType) -> Sets:
    """The sets of a value, every mask of its shape."""
    s = points(value, dtype.is_float)
    opened = None if s.any is None else np.broadcast_to(s.any, s.lo.shape)
    return Sets(s.lo, s.hi, s.nan, s.only, s.exact, opened)


def _each(change: Any, *sets: Sets) -> Sets:
    """A movement of values, applied to every part of their sets."""
    return Sets(*(change(*parts) for parts in zip(*map(parts_of, map(full, sets)), strict=True)))


def _is_alone(sets: Sets, value: Value, dtype: DType) -> bool:
    """Whether sets are the reference; a value may have fewer lanes than they."""
    return is_reference(sets, value.map(lambda a: np.broadcast_to(a, sets.lo.shape)), dtype)
