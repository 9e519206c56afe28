"""Define groups: each is a numbered family of programs of a level, for one op and dtype.

A program can be varied: other sizes, offsets, bounds of loops and constants in the same graph. All
of these are CONSTs, and equal ones are one node, so a size changes wherever it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import prod
from typing import TypeVarTuple

import numpy as np

from uop.conformance.suite.case import EFFORTS, MIXED, Batch, Case, CaseId, Source, Twin
from uop.conformance.suite.choices import Choices, CountedChoices
from uop.conformance.suite.values import Draw, sample, special_bits
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.footprint import SMALL, WorkError, at_most, metered
from uop.interpreter.inputs import bind_inputs
from uop.interpreter.numeric.storage import Array
from uop.spec.args import ConstArg, arg_of
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UopError
from uop.spec.graph import rebuild, slots_of
from uop.spec.ops.names import Op
from uop.spec.properties.shape import fixed
from uop.spec.uop import UOp, const, index_const

TRIES = 12
"""Many changes of sizes break a constraint, or let the program read what is not there."""
WORK = 1 << 16
"""The most elements of inputs, and the most that a varied program computes."""
SIZES = (0, 1, 2, 3, 5, 6, 7, 12, 16, 31, 33, 64, 100, 129, 257, 1001, 1025, 4099)

Args = TypeVarTuple("Args")


@dataclass(frozen=True, slots=True, eq=False)
class Generated:
    """A root and its inputs, the graph that it is made of, and twins that must agree with it."""

    root: UOp
    batches: tuple[Batch, ...]
    source: Source | None = None
    twins: tuple[Twin, ...] = ()


Counts = tuple[int, int, int]
Build = Callable[[Choices, int], Generated]


@dataclass(frozen=True, slots=True)
class Numbered:
    """Programs 0, 1, 2, ... of one kind; `counts` has the number that each effort runs."""

    level: str
    op: str
    dtype: str
    name: str
    counts: Counts

    @property
    def most(self) -> int:
        """Return how many programs there are."""
        return max(self.counts)

    def count(self, effort: str) -> int:
        return self.counts[EFFORTS.index(effort)]

    def id(self, index: int) -> CaseId:
        return CaseId(self.level, self.op, self.dtype, self.name, index)


@dataclass(frozen=True, slots=True)
class Group(Numbered):
    """Programs that have a meaning.

    Each program holds every op of `needs`. If `shared`, the programs of all dtypes stand for one
    another: a backend with few dtypes gets as many. Random programs have indices up to `furthest`,
    others only those of the efforts.
    """

    build: Build
    needs: tuple[Op, ...] = ()
    shared: bool = False
    furthest: int = 0

    @property
    def most(self) -> int:
        """Return how many programs there are."""
        return max(self.furthest, *self.counts)

    def case(self, index: int, seed: int) -> Case:
        """Return case number `index`, a function of the seed and its id alone."""
        return self.made(index, CountedChoices(seed, str(self.id(index))))

    def made(self, index: int, choices: Choices) -> Case:
        """Return case number `index` with other choices."""
        program = self.build(choices, index)
        return Case(self.id(index), program.root, program.batches, program.source, program.twins)


def group(
    level: str,
    op: Op | None,
    dtype: DType,
    name: str,
    counts: Counts,
    build: Callable[[*Args, Choices, int], Generated],
    *args: *Args,
    needs: tuple[Op, ...] = (),
) -> Group:
    """Return a group of a level, about one op or many; `build` takes `args` first."""

    def built(choices: Choices, index: int) -> Generated:
        return build(*args, choices, index)

    return Group(level, op.name if op else MIXED, dtype.name, name, counts, built, needs)


OF_ALL = frozenset({"bool", "int8", "int32", "uint64", "float16", "float32", "float64"})
"""Dtypes of each size, and of each way to hold one."""


def copying(group: Group) -> Group:
    """Return a group whose op copies bits: in a smoke run few dtypes do for all."""
    _, default, full = group.counts
    return group if group.dtype in OF_ALL else replace(group, counts=(0, default, full))


def with_data(root: UOp, choices: Choices, *draws: Draw) -> Generated:
    """Return a program with a batch by each draw: data for all inputs, contents of all buffers."""
    inputs = sorted(slots_of(root).items())
    return program(
        root,
        *({k: sample(draw, u.dtype, u.shape, choices) for k, u in inputs} for draw in draws),
    )


def program(
    root: UOp,
    *inputs: Batch | Mapping[int, Array] | Iterable[Array],
    source: Source | None = None,
) -> Generated:
    """Return a program with a batch for each mapping, or sequence of arrays for slots 0, 1, ...

    Inputs that the program does not read are left out.
    """
    used = slots_of(root)
    batches = []
    for batch in inputs or ({},):
        data = batch.inputs if isinstance(batch, Batch) else batch
        by_slot = data if isinstance(data, Mapping) else dict(enumerate(data))
        batches.append(Batch({slot: a for slot, a in by_slot.items() if slot in used}))
    return Generated(root, tuple(batches), source)


def varied(made: Generated, choices: Choices) -> Generated:
    """The program with one to three CONSTs changed; as it is where no change gives it a meaning.

    One that a source gives its meaning, or that has twins, would have to change together with them.
    """
    numbers = [u for u in made.root.toposort() if u.op is Op.CONST]
    if made.source is not None or made.twins or not numbers:
        return made
    for _ in range(TRIES):
        chosen = [choices.pick(numbers) for _ in range(choices.between(1, 3))]
        new = {u: _other(u, numbers, choices) for u in chosen}
        with suppress(UopError):
            return _with_meaning(_changed(made, new))
    return made


def _other(u: UOp, numbers: Sequence[UOp], choices: Choices) -> UOp:
    """Another number: a special one, a size, or one made of it and another of the program."""
    dtype = u.dtype
    if choices.chance(50):
        if dtype is dtypes.index:
            return index_const(choices.pick(SIZES))
        bits = choices.pick([*special_bits(dtype).values()])
        return UOp(Op.CONST, arg=ConstArg(choices.pick(bits), dtype))
    like = [n for n in numbers if n.dtype is dtype]
    old, other = (arg_of(n, ConstArg).value for n in (u, choices.pick(like)))
    made_of = (-old, old + 1, old - 1, old * 2, old * 3, old * other, old + other, other)
    new = choices.pick(made_of)
    return const(new if dtype.is_float else _wrapped(int(new), dtype), dtype)


def _wrapped(number: int, dtype: DType) -> int:
    least = int(dtype.min)
    return (number - least) % (1 << dtype.bits) + least


def _changed(made: Generated, new: Mapping[UOp, UOp]) -> Generated:
    """The program with other nodes; its inputs repeat, or end earlier, where sizes are others."""
    root = rebuild(made.root, lambda u, src: new.get(u) or u.with_src(src))
    shapes = {slot: fixed(u) for slot, u in slots_of(root).items()}
    if sum(map(prod, shapes.values())) > WORK:
        raise WorkError(f"inputs of more than {WORK} elements")
    batches = (
        {slot: np.resize(a, shapes[slot]) for slot, a in batch.inputs.items()}
        for batch in made.batches
    )
    return program(root, *batches)


def _with_meaning(made: Generated) -> Generated:
    """The program itself. UopError where it has no meaning on its inputs, or computes too much."""
    for batch in made.batches:
        bind_inputs(made.root, batch.inputs)
        with metered(WORK), at_most(SMALL):
            evaluate_full(made.root, batch.inputs)
    return made
