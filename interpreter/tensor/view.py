"""Views of memory: the place of each element of a location in its buffer, in units of bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from uop.interpreter.numeric.storage import Array, Mask
from uop.interpreter.tensor.masks import bitcast
from uop.interpreter.values import Value, together
from uop.spec.args import DTypeArg
from uop.spec.dtype import DTYPES, DType
from uop.spec.ops.names import Op
from uop.spec.registry import Shape
from uop.spec.uop import UOp, param

ABSENT = -1
OUTSIDE = -2
"""The mark of an element at an index out of bounds: only an access to it is undefined (D-052)."""


@dataclass(frozen=True, slots=True)
class View:
    """The elements of a location as places in its buffer, which is cut into units of some bytes."""

    parts: tuple[Array, ...]
    """The position of the first unit of each element, of the second, and so on. After a BITCAST the
    elements have another size than those of the buffer; a unit has the smaller size.
    """
    unit: int

    def map(self, move: Callable[[Array], Array]) -> View:
        """Apply a movement."""
        return View(tuple(move(part) for part in self.parts), self.unit)

    def any_is(self, mark: int) -> Mask:
        """Return the elements that are ABSENT, or OUTSIDE."""
        return np.asarray(np.logical_or.reduce([part == mark for part in self.parts]))

    def retyped(self, old: int, new: int) -> View:
        """Return the view with elements of another size in bytes: one of several, or several of
        one.
        """
        unit = min(self.unit, new)
        finer = self.unit // unit
        parts = [
            np.where(part < 0, part, part * finer + k) for part in self.parts for k in range(finer)
        ]
        if new > old:
            ratio = new // old
            return View(tuple(p[..., q::ratio] for q in range(ratio) for p in parts), unit)
        each, ratio = new // unit, old // new
        shape = (*parts[0].shape[:-1], -1) if ratio > 1 else parts[0].shape
        several = (np.stack(parts[j::each], axis=-1).reshape(shape) for j in range(each))
        return View(tuple(several), unit)


def is_plain(view: View, old: DType, new: DType) -> bool:
    return old is new and view.unit == old.itemsize


def of_view(contents: Value, old: DType, view: View, new: DType) -> Value:
    """Return the elements of a location of dtype `new`, in a flat buffer of dtype `old`."""
    if is_plain(view, old, new):
        return take(contents, view.parts[0])
    units = bits(contents, old, unit_of(view))
    parts = together([take(units, p) for p in view.parts], lambda a: np.stack(a, axis=-1))
    return bits(parts, unit_of(view), new).map(lambda a: a[..., 0])


def unit_of(view: View) -> DType:
    return DTYPES[f"uint{8 * view.unit}"]


def bits(value: Value, old: DType, new: DType) -> Value:
    """Return the BITCAST of a value."""
    return bitcast(cast_of_bits(value.data.shape, old, new), value)


def cast_of_bits(shape: Shape, old: DType, new: DType) -> UOp:
    """Return a BITCAST of elements in memory."""
    return UOp(Op.BITCAST, param(0, shape, old), arg=DTypeArg(new))


def take(contents: Value, part: Array) -> Value:
    """Pick the elements of flat contents at the positions of a view's part."""
    absent = part < 0
    position = np.where(absent, 0, part)
    if contents.data.size == 0:
        return Value(np.zeros(part.shape, contents.data.dtype), absent if absent.any() else None)

    def pick(mask: Mask | None) -> Mask | None:
        return None if mask is None else mask[position] & ~absent

    return Value(
        # numpy makes a scalar of one element, which is no array.
        np.asarray(contents.data[position]),
        absent if absent.any() else None,
        pick(contents.unspecified),
        pick(contents.free_nan),
    )
