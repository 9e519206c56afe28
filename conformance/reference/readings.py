"""One small program per word of an edition, and the core program that it reads into."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from uop.conformance.reference.examples import example_of
from uop.spec.editions import EDITIONS
from uop.spec.editions.edition import edition_of
from uop.spec.errors import UnsupportedError
from uop.spec.registry import DECLARATIONS
from uop.spec.text.program import print_program

WRITTEN = (
    """edition 2026-05
%0 = PARAM [4] {slot=0, dtype=float32}
%1 = COPY %0 {device="GPU"}
""",
    """edition 2026-07
%0 = PARAM [2,3] {slot=0, dtype=int32}
%1 = RANGE 2 {id=0, axis_type=DEVICE}
%2 = INDEX %0, %1
%3 = UNSHARD %2, %1 {axes=(0)}
""",
    """edition bestiary
%0 = PARAM {slot=0, dtype=float32, size=4}
%1 = DEVICE {device="GPU"}
%2 = COPY %0, %1
""",
    """edition bestiary
%0 = PARAM {slot=0, dtype=float32, size=4}
%1 = GEP %0 {indices=(3,0)}
""",
    """edition bestiary
%0 = PARAM {slot=0, dtype=float32, size=4}
%1 = CAT %0, %0
""",
    """edition bestiary
%0 = PARAM {slot=0, dtype=float32, size=4, addrspace=GLOBAL}
%1 = INDEX %0, 1
%2 = INDEX %0, 3
%3 = PTRCAT %1, %2
""",
    """edition bestiary
%0 = PARAM {slot=0, dtype=float32, size=4}
%1 = MSTACK %0, %0
%2 = MSELECT %1 {index=1}
""",
    """edition bestiary
%0 = PARAM {slot=0, dtype=float32, size=4}
%1 = CUSTOMI %0 {fmt="({0} + 1)", dtype=float32, shape=(4)}
%2 = MULTI %0, %1
""",
    """edition bestiary
%0 = DEFINE_REG {id=0, dtype=float32, size=4}
%1 = INDEX %0, 2
""",
    """edition bestiary
%0 = PARAM [2,3] {slot=0, dtype=float32}
%1 = REDUCE_AXIS %0 {reduce_op=ADD, axes=(1)}
""",
    """edition bestiary
%0 = PARAM {slot=0, dtype=float32, size=4, addrspace=GLOBAL}
%1 = RANGE 4 {axis_id=0, axis_type=REDUCE}
%2 = INDEX %0, %1
%3 = LOAD %0, %2
%4 = REDUCE %3, %1 {reduce_op=ADD}
""",
    """edition bestiary
%0 = PARAM {slot=0, dtype=float32, size=6}
%1 = STACK 2, 3
%2 = RESHAPE %0, %1
""",
)
"""Of the words that no edition writes when it prints an example of a core op."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A program of an edition, and the same in core ops."""

    text: str
    core: str


def reading_of(edition: str, word: str) -> Reading | None:
    """The shortest program here that has a word of an edition."""
    return _readings(edition).get(word)


@cache
def _readings(edition: str) -> dict[str, Reading]:
    texts = [text for text in WRITTEN if edition_of(text) == edition] + _printed(edition)
    found: dict[str, Reading] = {}
    for text in sorted(texts, key=len):
        words = {line.split()[2] for line in text.splitlines()[1:]}
        if not words <= found.keys():
            core = print_program(EDITIONS[edition].parse(text))
            found |= {word: Reading(text, core) for word in words - found.keys()}
    return found


def _printed(edition: str) -> list[str]:
    """The examples of the core ops, as far as an edition can say them."""
    texts = []
    for example in filter(None, map(example_of, DECLARATIONS)):
        try:
            texts.append(EDITIONS[edition].print(example.root))
        except UnsupportedError:
            continue
    return texts
