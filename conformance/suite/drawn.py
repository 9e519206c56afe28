"""Draws the inputs of a program that its file lacks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from uop.conformance.suite.levels.written import inputs_of
from uop.conformance.suite.values import draw_ordinary
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.args import ParamArg, arg_of
from uop.spec.case import FileCase
from uop.spec.graph import slots_of
from uop.spec.ops.names import Op
from uop.spec.properties.shape import size
from uop.spec.properties.symbolic import bind, is_variable
from uop.spec.uop import UOp

Draw = Callable[[UOp, int], Array | None]
"""Draws the input in a slot, or leaves it out."""


def inputs_and_drawn(case: FileCase, root: UOp, draw: Draw) -> tuple[dict[int, Array], list[int]]:
    """The inputs of a case, and drawn ones for those that it lacks, with the slots of the latter. A
    missing variable is the largest number of its range.
    """
    found = inputs_of(case)
    missing = {slot: u for slot, u in slots_of(root).items() if slot not in found}
    sizes = {u: slot for slot, u in slots_of(root).items() if is_variable(u)}
    for u, slot in sizes.items():
        if slot in missing:
            found[slot] = np.array(arg_of(u, ParamArg).max)
    numbers = {u: int(found[slot]) for u, slot in sizes.items()}
    leaves = {slot: bind(u, numbers) for slot, u in missing.items() if slot not in found}
    data = {slot: draw(leaf, slot) for slot, leaf in leaves.items()}
    drawn = {slot: array for slot, array in data.items() if array is not None}
    return found | drawn, sorted(missing.keys() & (found | drawn).keys())


def ordinary(u: UOp, key: int) -> Array | None:
    """Ordinary values of the suite for an input; None for a BUFFER, which may hold anything."""
    if u.op is Op.BUFFER:
        return None
    return draw_ordinary(u.dtype, size(u.shape), key).reshape(u.shape)


def within_bounds(u: UOp, key: int) -> Array:
    """Numbers for an input: an integer may be an index, and 0 and 1 lie in nearly all memory."""
    random = np.random.default_rng(key)
    numbers = (
        random.standard_normal(u.shape) if u.dtype.is_float else random.integers(0, 2, u.shape)
    )
    return np.asarray(numbers).astype(np_dtype(u.dtype))
