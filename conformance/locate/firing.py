"""Evaluates both sides of a firing: whether a rule kept the value of the node that it replaced.

The two graphs are programs with open ends: memory, loops around them, variables. The interpreter
runs them as one kernel over all positions of those loops, or, where that has no meaning, as
programs at a few positions. Memory holds the inputs of the program first, then special values: a
rule has to hold for any contents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from typing import TypeVar

import numpy as np

from uop.compiler.pipeline import lower
from uop.compiler.stages.rangeify.lower import LOWER
from uop.compiler.steps import result_slots
from uop.conformance.judging.compare import place_of
from uop.conformance.judging.expected import unwritten
from uop.conformance.shrink.reduce import count_of
from uop.conformance.suite.values import crossed, draw_mixed, draw_special
from uop.interpreter.accept import accept
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.interpreter.show import accepted_words, word
from uop.interpreter.values import Value, either
from uop.spec.args import AddrSpace, BufferArg, DTypeArg, ParamArg, RangeArg, SpecialArg, arg_of
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UndefinedError, UopError
from uop.spec.graph import LEAVES, outside, returns_memory, slot_of, slots_of, toposort, written_by
from uop.spec.kernel.forms import open_ranges
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import is_variable
from uop.spec.uop import UOp, dims, index_const

TOGETHER = 1 << 14
"""The most positions that are evaluated as one kernel."""
ALONE = 24
"""The positions that are evaluated one by one otherwise."""
FILLS = 4
"""How often memory is filled with values of each kind."""
FRESH = 1 << 20
"""The id of the first RANGE around an open graph: no kernel has so many."""

Inputs = Mapping[int, Array]
T = TypeVar("T")


def values_of(root: UOp, inputs: Inputs, slots: Sequence[int]) -> list[Value]:
    """The results of a program in order; where it returns memory, the contents of these slots."""
    given = _known(root, inputs)
    result = evaluate_full(root, given)
    if not isinstance(result, dict):
        return [*result] if isinstance(result, tuple) else [result]
    leaves = slots_of(root)
    return [
        result[slot] if slot in result else _initial(leaves[slot], given.get(slot))
        for slot in slots
    ]


def accepted_of(root: UOp, inputs: Inputs, slots: Sequence[int]) -> list[Accepted]:
    """What is accepted for the results that `values_of` gives."""
    given = _known(root, inputs)
    sets = accept(root, given)
    if not returns_memory(root):
        return [*sets]
    # Only memory that is stored to has sets.
    stored = evaluate_full(root, given)
    assert isinstance(stored, dict)
    by_slot = dict(zip(sorted(stored), sets, strict=True))
    leaves = slots_of(root)
    return [
        by_slot[slot]
        if slot in by_slot
        else Accepted(leaves[slot].dtype, _initial(leaves[slot], given.get(slot)))
        for slot in slots
    ]


def first_outside(accepted: Sequence[Accepted], values: Sequence[Value]) -> str:
    """The first element of the results that is not accepted, in words; empty where all are."""
    for output, (sets, value) in enumerate(zip(accepted, values, strict=True)):
        element = wrong_element(sets, value)
        if element is not None:
            found, right = as_words(sets, value, element)
            return f"output {output}[{place_of(value.data, element)}] is {found}, accepted {right}"
    return ""


def wrong_element(sets: Accepted, value: Value) -> int | None:
    """The first element that is outside of its set, or has no value where one is asked for."""
    with np.errstate(all="ignore"):
        inside = sets.contains(value.data)
    absent = either(value.invalid, value.unspecified)
    if absent is not None:
        inside = inside & (~absent | sets.any)
    wrong = np.flatnonzero(~inside.reshape(-1))
    return int(wrong[0]) if wrong.size else None


def as_words(sets: Accepted, value: Value, element: int) -> tuple[str, str]:
    """The element of a value, and what is accepted for it."""
    return word(value.map(lambda a: a.reshape(-1)), element), accepted_words(sets, element)


def _known(root: UOp, inputs: Mapping[int, T]) -> dict[int, T]:
    """The inputs of a program: a stage may drop one that no result depends on."""
    slots = slots_of(root)
    return {slot: a for slot, a in inputs.items() if slot in slots}


def _initial(leaf: UOp, contents: Array | None) -> Value:
    """Memory that no kernel stores to."""
    return unwritten(leaf) if contents is None else Value(contents)


@dataclass(frozen=True, slots=True)
class Firing:
    """A rule that replaced a node in a stage."""

    stage: str
    rule: str
    before: UOp
    after: UOp


@dataclass(frozen=True, slots=True)
class Change:
    """Where the two sides of a firing differ, and both values as text."""

    where: str
    found: str
    accepted: str


def change_of(firing: Firing, inputs: Inputs) -> Change | None:
    """Where the replacement has another value than the node; None where no difference is found.

    A rule that lowers an element of a tensor is judged by the tensor as a program of its own.
    UopError where nothing could be evaluated: no position of the graphs has a meaning alone.
    """
    if firing.rule in LOWER:
        return _change_of_tensor(firing, inputs)
    sides = _Sides.of(firing)
    judged, error = False, UopError("no position of it is a program")
    for contents in _fills(sides.leaves, inputs):
        for here in sides.alternatives():
            try:
                change = here.change(contents)
            except UopError as failed:
                error = failed
                continue
            if change is not None:
                return change
            judged = True
            if here.is_whole:
                break
    if not judged:
        raise error
    return None


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """The two graphs closed to programs, and how positions in their results are named."""

    before: UOp
    after: UOp
    slots: Sequence[int]
    names: tuple[str, ...]
    counts: tuple[int, ...]
    at: str
    is_whole: bool

    def change(self, contents: Inputs) -> Change | None:
        """The first difference of the results; UopError where the graph before has no meaning."""
        sets = accepted_of(self.before, contents, self.slots)
        try:
            values = values_of(self.after, contents, self.slots)
        except UndefinedError as error:
            return Change(self.at, f"without meaning: {error}", "a value")
        for one, value in zip(sets, values, strict=True):
            shapes = one.value.data.shape, value.data.shape
            # A scalar may get axes: those of the loops that become shape.
            if shapes[0] and shapes[0] != shapes[1]:
                return Change(self.at, *(f"shape {shape}" for shape in shapes[::-1]))
            element = wrong_element(one, value)
            if element is not None:
                return Change(self._where(element, value.data), *as_words(one, value, element))
        return None

    def _where(self, element: int, data: Array) -> str:
        if self.names:
            position = np.unravel_index(element, self.counts)
            pairs = zip(self.names, position, strict=True)
            return ", ".join(f"{name} = {int(k)}" for name, k in pairs)
        place = f"element {place_of(data, element)}"
        return ", ".join(filter(None, [self.at, place if data.shape else ""]))


@dataclass(frozen=True, slots=True, eq=False)
class _Sides:
    """The two graphs of a firing, without variables, and what they leave open."""

    before: UOp
    after: UOp
    counters: tuple[tuple[UOp, ...], ...]
    """The open RANGEs and SPECIALs: those that count the same in a row."""
    leaves: Mapping[int, UOp]
    """The memory by slot."""

    @classmethod
    def of(cls, firing: Firing) -> _Sides:
        """UopError for sides without common positions, of a rule that replaces what counts, and for
        a side that reads what an earlier step stored.
        """
        before, after = _without_variables([firing.before, firing.after])
        order = toposort([before, after], lambda u: u.src)
        inside = open_ranges(order)
        # A whole kernel has its own work items.
        specials = [u for u in order if u.op is Op.SPECIAL and before.op is not Op.SINK]
        by_name: dict[str, list[UOp]] = {}
        for u in (*specials, *sorted(inside[before] | inside[after], key=_number)):
            by_name.setdefault(_name(u), []).append(u)
        own = {_name(u) for u in before.toposort() if u.declaration.is_counter}
        if before.declaration.is_counter or not by_name.keys() <= own:
            raise UopError("it replaces a counter")
        leaves = _memory(before)
        if not _memory(after).keys() <= leaves.keys():
            raise UopError("it reads what an earlier step stored")
        return cls(before, after, tuple(map(tuple, by_name.values())), leaves)

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(_name(row[0]) for row in self.counters)

    def alternatives(self) -> Iterator[_Place]:
        """The graphs as programs: at all positions together, or at some of them."""
        counts = tuple(count_of(row[0]) for row in self.counters)
        if prod(counts) <= TOGETHER:
            with suppress(UopError):
                yield self._together(counts)
        if self.before.dtype is dtypes.void and self.before.op is not Op.TUPLE:
            return
        total = prod(counts)
        step = max(total // ALONE, 1)
        for position in range(0, total, step | 1):
            numbers = np.unravel_index(position, counts) if counts else ()
            with suppress(UopError):
                yield self._at([int(n) for n in numbers])

    def _together(self, counts: Sequence[int]) -> _Place:
        """A kernel that stores the value at each position, or runs the effect at each."""
        ranges = [
            UOp(Op.RANGE, index_const(n), arg=RangeArg(FRESH + k)) for k, n in enumerate(counts)
        ]
        new = {u: r for row, r in zip(self.counters, ranges, strict=True) for u in row}
        out = 1 + max(self.leaves, default=-1)
        before, after = (
            self._called(_body(side.substitute(new), ranges, out), out, prod(counts))
            for side in (self.before, self.after)
        )
        is_value = self.before.dtype is not dtypes.void
        written = {slot for side in (before, after) for slot in written_by(side.src[0])}
        slots = (out,) if is_value else tuple(sorted(written))
        names = self._names if is_value else ()
        return _Place(before, after, slots, names, tuple(counts), "", True)

    def _called(self, body: UOp, out: int, size: int) -> UOp:
        """A program that calls a body on all memory, and on that for the value at each position."""
        arguments = []
        for slot in range(out):
            leaf = self.leaves.get(slot)
            shape, dtype = ((1,), dtypes.bool) if leaf is None else (leaf.shape, leaf.dtype)
            arguments.append(UOp(Op.BUFFER, dims(shape), arg=BufferArg(slot, dtype)))
        if self.before.dtype is not dtypes.void:
            dtype = dtypes.int64 if self.before.dtype is dtypes.index else self.before.dtype
            arguments.append(UOp(Op.BUFFER, dims((size,)), arg=BufferArg(out, dtype)))
        return UOp(Op.SINK, UOp(Op.CALL, body, *arguments))

    def _at(self, numbers: Sequence[int]) -> _Place:
        rows = zip(self.counters, numbers, strict=True)
        new = {u: index_const(n) for row, n in rows for u in row}
        before, after = self.before.substitute(new), self.after.substitute(new)
        pairs = zip(self._names, numbers, strict=True)
        at = ", ".join(f"{name} = {n}" for name, n in pairs)
        return _Place(before, after, tuple(sorted(self.leaves)), (), (), at, False)


def _body(side: UOp, ranges: Sequence[UOp], out: int) -> UOp:
    """A kernel of one side inside loops."""
    if side.op is Op.SINK:
        return side
    effect = side
    if side.dtype is not dtypes.void:
        position = index_const(0)
        for r in ranges:
            size = index_const(count_of(r))
            position = UOp(Op.ADD, UOp(Op.MUL, position, size), r)
        value = UOp(Op.LOAD, side) if side.addrspace is not None else side
        if value.dtype is dtypes.index:
            value = UOp(Op.CAST, value, arg=DTypeArg(dtypes.int64))
        memory = UOp(
            Op.PARAM,
            dims((prod(count_of(r) for r in ranges),)),
            arg=ParamArg(out, value.dtype, None, AddrSpace.GLOBAL),
        )
        effect = UOp(Op.STORE, UOp(Op.INDEX, memory, position), value)
    for r in reversed(ranges):
        effect = UOp(Op.END, effect, r)
    return UOp(Op.SINK, effect)


def _change_of_tensor(firing: Firing, inputs: Inputs) -> Change | None:
    """The first element that the kernels of a tensor change; its index in the firing is not known,
    nor are the tensors that its memory holds.
    """
    (root,) = _without_variables([firing.before])
    left = lower(root, firing.stage)
    slots = result_slots(root, lower(root, "callify"))
    for contents in _fills(_memory(root), inputs):
        try:
            change = _Place(root, left, slots, (), (), "", True).change(contents)
        except UndefinedError:
            continue
        if change is not None:
            return change
    return None


def _fills(leaves: Mapping[int, UOp], inputs: Inputs) -> Iterator[dict[int, Array]]:
    """Contents of memory: like the inputs, then special and ordinary values."""
    numbered = list(enumerate(leaves.items()))
    for shift in range(FILLS):
        yield {slot: _like(u, inputs, number + shift) for number, (slot, u) in numbered}
    for key in range(FILLS):
        for draw in (draw_mixed, draw_special, _crossed):
            yield {
                slot: draw(u.dtype, prod(u.shape), 64 * number + key).reshape(u.shape)
                for number, (slot, u) in numbered
            }


def _memory(side: UOp) -> dict[int, UOp]:
    """What a graph reads and writes beside LOCAL memory and registers, by slot."""
    leaves: dict[int, UOp] = {}
    for u in outside(side):
        if u.op in LEAVES and u.addrspace in (None, AddrSpace.GLOBAL):
            leaves.setdefault(slot_of(u), u)
    return leaves


def _without_variables(sides: Sequence[UOp]) -> list[UOp]:
    """The graphs with a number for each variable: the middle of its range."""
    new = {u: index_const(_middle(u)) for u in toposort(sides, lambda u: u.src) if is_variable(u)}
    return [side.substitute(new) for side in sides]


def _like(leaf: UOp, inputs: Inputs, number: int) -> Array:
    """Contents like an input of the same size, else one of the same dtype, or 1, 2, 3.

    Which of several it is depends on the number: kernels number their memory in their own way.
    """
    dtype, size = np_dtype(leaf.dtype), prod(leaf.shape)
    typed = [a for a in inputs.values() if a.dtype == dtype and a.size]
    alike = [a for a in typed if a.size == size] or typed
    source = alike[number % len(alike)] if alike else np.arange(1, 8).astype(dtype)
    return np.resize(source, size).reshape(leaf.shape)


def _crossed(dtype: DType, size: int, key: int) -> Array:
    """Special values, so that those of even and odd memory meet in all pairs."""
    number, turn = divmod(key, 64)
    column = crossed(dtype)[number % 2]
    return np.resize(np.roll(column, turn * len(column) // FILLS), size)


def _number(r: UOp) -> int:
    return arg_of(r, RangeArg).id


def _middle(variable: UOp) -> int:
    interval = variable.min_max
    assert interval is not None
    return (int(interval.min) + int(interval.max)) // 2


def _name(counter: UOp) -> str:
    if counter.op is Op.SPECIAL:
        return arg_of(counter, SpecialArg).name
    return f"RANGE {_number(counter)}"
