"""Evaluate programs by the reference: tensor graphs, and kernel programs that a compiler makes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from uop.interpreter.inputs import Inputs, bind_inputs, checked_inputs, with_numbers
from uop.interpreter.kernel.launch import run_program
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.interpreter.tensor.evaluation import ARRAYS, Evaluation, FullOutput
from uop.interpreter.values import Observer, Value, either
from uop.spec.errors import PassError
from uop.spec.extension import in_core_ops
from uop.spec.graph import ProgramKind, kind_of
from uop.spec.ops.names import Op
from uop.spec.properties.interval import full
from uop.spec.uop import UOp, checked_root

Output = Array | tuple[Array, ...] | dict[int, Array]


def evaluate(root: UOp, inputs: Inputs | None = None) -> Output:
    """Return the value of a program; check every intermediate value against its derived properties.

    `inputs` maps the slots of PARAMs and BUFFERs to arrays of their shape and storage dtype. A
    value gives one array, a TUPLE a tuple, a SINK a dict from slot to contents. UNSPECIFIED and
    INVALID elements of the result are arbitrary. Raises InvalidError for inputs that do not fit,
    UndefinedError for a program without meaning on them, and LackingError if memory, or a meaning
    that is registered by name, is missing.
    """
    result = evaluate_full(root, inputs, check_of(checked_root(root)))
    if isinstance(result, dict):
        return {slot: value.data for slot, value in result.items()}
    return tuple(v.data for v in result) if isinstance(result, tuple) else result.data


def evaluate_full(
    root: UOp, inputs: Inputs | None = None, observe: Observer | None = None
) -> FullOutput:
    """Evaluate without checks and keep the masks; call `observe` with each node and its value."""
    root, inputs = with_numbers(checked_root(root), checked_inputs(inputs))
    values = bind_inputs(root, inputs)
    kernels = kind_of(root).calls_kernels
    # These extension ops have a meaning of their own; a REDUCE may fold with MIN.
    evaluated = (Op.CDIV, Op.CMOD, Op.MIN, Op.NOOP, Op.PRECAST, Op.REDUCE)
    root = in_core_ops(root, frozenset(() if kernels else evaluated))
    with np.errstate(all="ignore"):
        if kernels:
            return run_program(root, values, observe)
        return Evaluation(root, values, ARRAYS, observe).result()


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
