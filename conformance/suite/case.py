"""Represent test cases: programs with input batches, texts that must be rejected, and ids."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from zlib import crc32

from uop.interpreter.numeric.storage import Array
from uop.spec.errors import UopError
from uop.spec.uop import UOp

if TYPE_CHECKING:
    from uop.interpreter.tensor.evaluation import FullOutput

LEVELS = ("op", "invalid", "property", "function", "graph", "twin", "kernel", "schedule", "device")
OWN = "cases"
"""The level of cases that the user of a backend has written."""
ALL_LEVELS = (*LEVELS, OWN)
EFFORTS = ("smoke", "default", "full")
FUZZ = "fuzz"
"""The effort in the report of a fuzz run: as many random programs as the time allows."""
MOST_DIGITS = 18
"""The most digits of the index of a case."""
MIXED = "MIXED"
"""The op of a case that is about many ops at once."""
KEYED = "+"
"""Precedes the key of a vocabulary in the group of an id."""
ANY_LABEL = "drawn"
"""The group of random invalid cases, which may break any label of an op."""
GENERATOR = 2
"""The version of the generator: a seed and an id name one case as long as it stays the same."""


OWN_ID = re.compile(r"cases/(?P<group>(?P<file>.+?\.uop)/.+)")


class NoSuchCaseError(UopError):
    """An id names no case; the message says which part of it is wrong."""


@dataclass(frozen=True, slots=True)
class CaseId:
    """`level/op/dtype/group/index@version`: says what the case is, whichever cases are selected.

    The version is that of the generator. The group of a random program over a part of the
    language ends in `+` and the key of its `Vocabulary`. A case of the adopter is
    `cases/FILE/CASE`, where the file stands for the op, and for the group with the case.
    """

    level: str
    op: str
    dtype: str
    group: str
    index: int
    version: int = GENERATOR

    def part(self, count: int) -> int:
        """The part of so many that the case is in, by its id alone: from 0 on."""
        return crc32(str(self).encode()) % count

    def __str__(self) -> str:
        if self.level == OWN:
            return f"{OWN}/{self.group}"
        return f"{self.level}/{self.op}/{self.dtype}/{self.group}/{self.index}@{self.version}"

    @classmethod
    def parse(cls, text: str) -> CaseId:
        """Parse an id, the inverse of str(); without a version it is the case of this generator."""
        if own := OWN_ID.fullmatch(text):
            return cls(OWN, own["file"], MIXED, own["group"], 0)
        if text.startswith(f"{OWN}/"):
            raise NoSuchCaseError(f"expected {OWN}/FILE.uop/CASE, found {text!r}")
        *parts, last = text.split("/")
        index, at, version = last.partition("@")
        numbers = (index, version) if at else (index,)
        if len(parts) != 4 or not all(n.isdecimal() and len(n) <= MOST_DIGITS for n in numbers):
            raise NoSuchCaseError(f"expected level/op/dtype/group/index@version, found {text!r}")
        level, op, dtype, group = parts
        return cls(level, op, dtype, group, int(index), int(version) if at else GENERATOR)

    @property
    def key(self) -> str:
        """Return the key of the vocabulary of a random program; empty for the whole language."""
        return self.group.partition(KEYED)[2]


@dataclass(frozen=True, slots=True, eq=False)
class Evaluated:
    """A program and its result on a batch."""

    root: UOp
    result: FullOutput


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Inputs by slot, in storage dtype: every PARAM, and each BUFFER that starts with contents."""

    inputs: Mapping[int, Array]
    evaluated: Evaluated | None = None
    """What the generator has evaluated on these inputs, so that a judge need not do it again."""


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """The graph that a program is made of, with a batch for each batch of the program."""

    root: UOp
    batches: tuple[Batch, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Twin:
    """A program equivalent to that of a case; `name` says how it differs.

    Its batches stand for the first batches of the case.
    """

    name: str
    root: UOp
    batches: tuple[Batch, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Identified:
    """A case with an id, which names the cell of the report that counts it."""

    id: CaseId

    @property
    def level(self) -> str:
        return self.id.level

    @property
    def op(self) -> str:
        return self.id.op

    @property
    def dtype(self) -> str:
        return self.id.dtype


@dataclass(frozen=True, slots=True, eq=False)
class Case(Identified):
    """A program that is compiled once and judged on each batch.

    The root is a value, a TUPLE or a SINK. `op` and `dtype` name the cell of the report in which it
    counts. A program with a source is judged by the accepted results of the source, a twin by those
    of its case. A batch that occurs twice must give the same bits both times.
    """

    root: UOp
    batches: tuple[Batch, ...]
    source: Source | None = None
    twins: tuple[Twin, ...] = ()

    @property
    def programs(self) -> tuple[Case, ...]:
        """Return the case without its twins, then each twin as a case of its own."""
        # A case without twins is itself here, so that a judge can recognize it.
        alone = Case(self.id, self.root, self.batches, self.source) if self.twins else self
        return (alone, *(self._judged_as(twin) for twin in self.twins))

    def _judged_as(self, twin: Twin) -> Case:
        source = Source(self.root, self.batches[: len(twin.batches)])
        return Case(self.id, twin.root, twin.batches, source)

    @property
    def group(self) -> str:
        return self.id.group

    @property
    def is_exhaustive(self) -> bool:
        """Return whether one program holds every value of the dtype; it is not a sample."""
        return self.id.group == "exhaustive"


@dataclass(frozen=True, slots=True)
class InvalidCase(Identified):
    """The text of a program that breaks exactly the constraint `label` and must be rejected."""

    label: str
    text: str
