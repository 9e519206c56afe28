"""Check values against the derived properties of their nodes: dtype, shape and min_max."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from uop.interpreter.numeric.storage import np_dtype
from uop.interpreter.values import Value, either
from uop.spec.errors import PassError
from uop.spec.graph import ProgramKind, kind_of
from uop.spec.properties.interval import full

if TYPE_CHECKING:
    from uop.spec.uop import UOp


def check_of(root: UOp) -> Callable[[UOp, Value], None]:
    """Return the function that checks the values of a program."""
    return check_value if kind_of(root) is ProgramKind.TENSOR else check_elements


def check_value(u: UOp, value: Value) -> None:
    """Raise PassError if a value contradicts its node: a rule or a derivation is wrong."""
    if value.data.shape != u.shape:
        raise PassError(f"{u!r}: shape is {u.shape}, evaluation gave {value.data.shape}")
    check_elements(u, value)


def check_elements(u: UOp, value: Value) -> None:
    """Check a value as `check_value` does, except its shape: a kernel has one value per
    work item.
    """
    data = value.data
    if data.dtype != np_dtype(u.dtype):
        raise PassError(f"{u!r}: dtype is {u.dtype.name}, evaluation gave {data.dtype}")
    interval = u.min_max
    if interval is None or not data.size:
        return
    whole = full(u.dtype)
    # Most intervals are the one object that stands for the dtype.
    if interval is whole or interval == whole:
        return
    absent = either(value.invalid, value.unspecified)
    ordinary = data if absent is None else data[~absent]
    if u.dtype.is_float:
        nan = np.isnan(ordinary)
        if np.count_nonzero(nan):
            if not interval.may_be_nan:
                raise PassError(f"{u!r}: min_max {interval} excludes the NaN that evaluation gave")
            ordinary = ordinary[~nan]
    if not ordinary.size:
        return
    low, high = ordinary.min(), ordinary.max()
    if low < interval.min or high > interval.max:
        raise PassError(f"{u!r}: min_max is {interval}, evaluation gave {low} to {high}")
