"""Check the inputs of a program, arrays by slot, against its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from reprlib import repr as _repr
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from uop.interpreter.numeric.storage import Array, np_dtype
from uop.interpreter.values import Value
from uop.spec.args import ParamArg
from uop.spec.conditions.labels import check_slots, invalid, misfit
from uop.spec.graph import kept_with_root, slots_of
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import bind, is_variable, with_bound_variables

if TYPE_CHECKING:
    from uop.spec.uop import UOp

Inputs = Mapping[int, "Array | Value"]
Given = TypeVar("Given", bound="Array | Value")


def checked_inputs(inputs: Inputs | None) -> Inputs:
    """Return the inputs, {} for None; raise InvalidError for anything but a mapping."""
    if inputs is None or isinstance(inputs, Mapping):
        return inputs or {}
    raise invalid("INPUT.c6", "inputs", _repr(inputs))


def with_numbers(root: UOp, inputs: Mapping[int, Given]) -> tuple[UOp, Mapping[int, Given]]:
    """Bind the variables of a program to their inputs, and those of its bodies to the numbers of
    their calls; return the program and the remaining inputs.

    A variable without a value stays as a PARAM without input. Raises InvalidError for a value
    outside the range of its variable.
    """
    if not _takes_numbers(root):
        return root, inputs
    root = with_bound_variables(root)
    variables = {u: slot for slot, u in slots_of(root).items() if is_variable(u)}
    if any(slot not in inputs for slot in variables.values()):
        return root, inputs
    fitting = {u: _fitting(slot, u, inputs[slot]) for u, slot in variables.items()}
    root = bind(root, {u: int(value.data) for u, value in fitting.items()})
    return root, {slot: a for slot, a in inputs.items() if slot not in variables.values()}


@kept_with_root
def _takes_numbers(root: UOp) -> bool:
    return any(u.op is Op.BIND or is_variable(u) for u in root.toposort())


def bind_inputs(root: UOp, inputs: Inputs) -> dict[UOp, Value]:
    """Return the value of each PARAM, and of each BUFFER that has an input.

    Raises InvalidError for a missing, unknown or ill-fitting input.
    """
    slots = slots_of(root)
    check_slots(slots, inputs.keys())
    return {u: _fitting(slot, u, inputs[slot]) for slot, u in slots.items() if slot in inputs}


def _fitting(slot: int, u: UOp, array: Array | Value) -> Value:
    value = array if isinstance(array, Value) else Value(np.asarray(array))
    if value.data.shape != u.shape or value.data.dtype != np_dtype(u.dtype):
        raise misfit(slot, u, f"{value.data.dtype}{list(value.data.shape)}")
    arg = u.arg
    if isinstance(arg, ParamArg) and arg.min is not None and arg.max is not None:
        number = int(value.data)
        if not arg.min <= number <= arg.max:
            raise invalid("INPUT.c5", f"slot {slot}: from {arg.min} to {arg.max}", str(number), u)
    return value
