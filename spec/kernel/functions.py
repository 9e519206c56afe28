"""The table of functions on whole buffers that a CALL runs by name (D-069)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

from uop.spec.errors import UnsupportedError

Contents = Any
"""A flat numpy array."""
Meaning = Callable[..., Sequence[Contents]]


@dataclass(frozen=True, slots=True)
class CustomFunction:
    """A function that a CALL runs on whole buffers.

    `meaning(buffers, *meta)` takes the flat contents of every argument and the numbers of the node.
    It returns the new contents of the buffers at the positions `writes`, in that order. These are
    unspecified where any element of the buffers at the positions `reads` is.
    """

    meaning: Meaning
    reads: tuple[int, ...]
    writes: tuple[int, ...]

    def fits(self, buffers: int, numbers: int) -> bool:
        """Whether it takes so many buffers and numbers."""
        needed = 1 + max((*self.reads, *self.writes), default=-1)
        return needed <= buffers and takes(self.meaning, 1 + numbers)


CUSTOM_FUNCTIONS: dict[str, CustomFunction] = {}


def custom_function(
    name: str, *, reads: tuple[int, ...], writes: tuple[int, ...]
) -> Callable[[Meaning], Meaning]:
    """Register a function as the meaning of the CUSTOMFUNCTION of this name: the interpreter and
    compiled programs run it. ValueError for a second one of the same name.
    """

    def register(meaning: Meaning) -> Meaning:
        if name in CUSTOM_FUNCTIONS:
            raise ValueError(f"two meanings of {name!r}")
        CUSTOM_FUNCTIONS[name] = CustomFunction(meaning, reads, writes)
        return meaning

    return register


def function_named(name: str, buffers: int, numbers: int) -> CustomFunction:
    """The function of a name; UnsupportedError if none is registered for so many operands."""
    if name not in CUSTOM_FUNCTIONS:
        raise UnsupportedError(f"{name!r} has no registered meaning")
    function = CUSTOM_FUNCTIONS[name]
    if not function.fits(buffers, numbers):
        found = f"{buffers} buffers and {numbers} numbers"
        raise UnsupportedError(f"{name!r} has no registered meaning for {found}")
    return function


def takes(function: Callable[..., object], count: int) -> bool:
    """Whether a function takes so many arguments."""
    try:
        signature(function).bind(*range(count))
    except TypeError:
        return False
    return True


@custom_function("copy", reads=(1,), writes=(0,))
def copy(buffers: Sequence[Contents]) -> Sequence[Contents]:
    """Copy the second buffer into the first."""
    return (buffers[1],)
