"""Define groups: each is a numbered family of programs of a level, for one op and dtype."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVarTuple

from uop.conformance.suite.case import EFFORTS, KEYED, MIXED, Batch, Case, CaseId, Source, Twin
from uop.conformance.suite.choices import Choices, CountedChoices
from uop.conformance.suite.values import Draw, sample
from uop.interpreter.numeric.storage import Array
from uop.spec.dtype import DType
from uop.spec.graph import slots_of
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

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
class Group:
    """Programs 0, 1, 2, ... of one kind; `counts` has the number that each effort runs.

    Each program holds every op of `needs`. If `shared`, the programs of all dtypes stand for one
    another: a backend with few dtypes gets as many. Random programs have indices up to `furthest`,
    others only those of the efforts.
    """

    level: str
    op: str
    dtype: str
    name: str
    counts: Counts
    build: Build
    needs: tuple[Op, ...] = ()
    shared: bool = False
    furthest: int = 0

    @property
    def most(self) -> int:
        """Return how many programs there are."""
        return max(self.furthest, *self.counts)

    def keyed(self, key: str) -> Group:
        """Return the group under the key of the vocabulary of its programs."""
        return replace(self, name=f"{self.name}{KEYED}{key}") if key else self

    def count(self, effort: str) -> int:
        return self.counts[EFFORTS.index(effort)]

    def id(self, index: int) -> CaseId:
        return CaseId(self.level, self.op, self.dtype, self.name, index)

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
