"""What levels are made of: groups, each a numbered family of programs for one op and dtype."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from uop.conformance.suite.case import EFFORTS, KEYED, Batch, Case, CaseId, Source, Twin
from uop.conformance.suite.choices import Choices, CountedChoices
from uop.interpreter.numeric.storage import Array
from uop.spec.dtype import DType
from uop.spec.ops.names import Op
from uop.spec.uop import UOp


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A root and the inputs it is run on; what it is made of, and what must agree with it."""

    root: UOp
    batches: tuple[Batch, ...]
    source: Source | None = None
    twins: tuple[Twin, ...] = ()


Builder = Callable[[Choices, int], Program]
Counts = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Group:
    """Programs 0, 1, 2, ... of one kind; `counts` says how many each effort runs.

    Each program holds every op of `needs`. Where `shared`, the programs of all dtypes stand for one
    another: a backend with few dtypes gets as many.
    """

    level: str
    op: str
    dtype: str
    name: str
    counts: Counts
    build: Builder
    needs: tuple[Op, ...] = ()
    shared: bool = False

    def keyed(self, key: str) -> Group:
        """The group under the key of the vocabulary that its programs are drawn from."""
        return replace(self, name=f"{self.name}{KEYED}{key}") if key else self

    def count(self, effort: str) -> int:
        return self.counts[EFFORTS.index(effort)]

    def id(self, index: int) -> CaseId:
        return CaseId(self.level, self.op, self.dtype, self.name, index)

    def case(self, index: int, seed: int) -> Case:
        """Program number `index`: a function of the seed and its id alone."""
        return self.made(index, CountedChoices(seed, str(self.id(index))))

    def made(self, index: int, choices: Choices) -> Case:
        """Program number `index`, where something else decides."""
        program = self.build(choices, index)
        return Case(self.id(index), program.root, program.batches, program.source, program.twins)


def op_group(op: Op, dtype: DType, name: str, counts: Counts, build: Builder) -> Group:
    """A group of level `op`."""
    return Group("op", op.name, dtype.name, name, counts, build)


OF_ALL = frozenset({"bool", "int8", "int32", "uint64", "float16", "float32", "float64"})
"""Dtypes of each size, and of each way to hold one."""


def copying_group(op: Op, dtype: DType, name: str, counts: Counts, build: Builder) -> Group:
    """A group of level `op` whose op copies bits: in a smoke run some dtypes stand for all."""
    kept = counts if dtype.name in OF_ALL else (0, *counts[1:])
    return op_group(op, dtype, name, kept, build)


def program(root: UOp, *inputs: Mapping[int, Array] | Iterable[Array]) -> Program:
    """A program with one batch for each mapping, or each sequence of arrays for slots 0, 1, ..."""
    batches = tuple(Batch(i if isinstance(i, Mapping) else dict(enumerate(i))) for i in inputs)
    return Program(root, batches or (Batch({}),))
