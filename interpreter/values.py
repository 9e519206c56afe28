"""What a value is: an array, and which of its elements are absent, open, or NaNs with open bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from uop.interpreter.numeric.storage import Array, Mask


@dataclass(slots=True, eq=False)
class Value:
    """The elements of one node, in storage dtype; a mask of None means nowhere.

    Where `invalid` is set the element is absent, where `unspecified` is set the spec gives it no
    value; `data` holds something there that nobody may read. Where `free_nan` is set the element is
    a NaN made by arithmetic, whose payload and sign are open.

    The fields are Final and the class is not frozen: an evaluation makes one for every node, and of
    a frozen class each takes three times as long.
    """

    data: Final[Array]
    invalid: Final[Mask | None] = None
    unspecified: Final[Mask | None] = None
    free_nan: Final[Mask | None] = None

    def map(self, move: Callable[[Array], Array]) -> Value:
        """The value at other places: a movement applied to the elements and to every mask."""
        masks = (self.invalid, self.unspecified, self.free_nan)
        return Value(move(self.data), *(None if mask is None else move(mask) for mask in masks))


def either(*masks: Mask | None) -> Mask | None:
    """The union of masks."""
    result: Mask | None = None
    for mask in masks:
        if mask is not None:
            result = mask if result is None else result | mask
    return result
