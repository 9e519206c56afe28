"""Represent a value: an array, and masks of its absent, unspecified and open NaN elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from uop.interpreter.numeric.storage import Array, Mask

if TYPE_CHECKING:
    from uop.spec.uop import UOp


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """The elements of one node, in storage dtype; a mask of None is set nowhere.

    `invalid` marks absent elements, and `unspecified` those without a value in the spec: their
    `data` is arbitrary, and nothing may read it. `free_nan` marks NaNs that arithmetic made: their
    payload and sign are open.
    """

    data: Array
    invalid: Mask | None = None
    unspecified: Mask | None = None
    free_nan: Mask | None = None

    def map(self, move: Callable[[Array], Array]) -> Value:
        """Apply a movement to the elements and to every mask."""
        return Value(move(self.data), *(None if m is None else move(m) for m in self.masks))

    @property
    def masks(self) -> tuple[Mask | None, Mask | None, Mask | None]:
        return self.invalid, self.unspecified, self.free_nan


Observer = Callable[["UOp", Value], None]
"""Called with each node and its value."""
Join = Callable[[list[Array]], Array]
"""Combines several arrays into one."""


def together(values: Sequence[Value], join: Join) -> Value:
    """Join several values: apply a join to their elements and to every mask."""
    arrays = [v.data for v in values]
    masks = zip(*(v.masks for v in values), strict=True)
    return Value(join(arrays), *(joined_mask(m, arrays, join) for m in masks))


def joined_mask(masks: Sequence[Mask | None], arrays: Sequence[Array], join: Join) -> Mask | None:
    """Join the masks of several arrays; None if there are none."""
    if all(mask is None for mask in masks):
        return None
    return join([full(m, a) for m, a in zip(masks, arrays, strict=True)])


def full(mask: Mask | None, like: Array) -> Mask:
    """Return a mask in the shape of an array; None is set nowhere."""
    return np.zeros(like.shape, np.bool_) if mask is None else np.broadcast_to(mask, like.shape)


def either(*masks: Mask | None) -> Mask | None:
    """Return the union of masks."""
    result: Mask | None = None
    for mask in masks:
        if mask is not None:
            result = mask if result is None else result | mask
    return result
