"""Evaluate programs by the reference: tensor graphs, and kernel programs that a compiler makes."""

from __future__ import annotations

import numpy as np

from uop.interpreter.check import check_of
from uop.interpreter.inputs import Inputs, bind_inputs, checked_inputs, with_numbers
from uop.interpreter.kernel.program import run_program
from uop.interpreter.numeric.storage import Array
from uop.interpreter.tensor.evaluation import ARRAYS, Evaluation, FullOutput
from uop.interpreter.values import Observer
from uop.spec.extension import in_core_ops
from uop.spec.graph import kind_of
from uop.spec.ops.names import Op
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
