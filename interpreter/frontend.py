"""Evaluate Tensors of the frontend with numpy arrays, by the interpreter or another backend."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import STORED, Array, np_dtype
from uop.spec.frontend.evaluator import Held

if TYPE_CHECKING:
    from uop.spec.uop import UOp


@dataclass(frozen=True, slots=True)
class NumpyEvaluator:
    """An evaluator of Tensors on numpy arrays, by default the reference with all its checks.

    `run` may replace it: `NumpyEvaluator(lambda root, inputs: compile(root,
    "opencl").run(inputs))`.
    """

    run: Callable[[UOp, dict[int, Array]], object] = evaluate

    def hold(self, data: object) -> Held | None:
        """Copy a numpy array or scalar; return None for anything else and for unknown dtypes."""
        if not isinstance(data, np.ndarray | np.generic):
            return None
        dtype = STORED.get(data.dtype)
        return None if dtype is None else Held(dtype, data.shape, np.array(data))

    def evaluate(self, root: UOp, inputs: Mapping[int, Held]) -> Held:
        result = self.run(root, {slot: self.array(held) for slot, held in inputs.items()})
        return Held(root.dtype, root.shape, cast(Array, result))

    def array(self, held: Held) -> Array:
        if isinstance(held.data, bytes):
            return np.frombuffer(held.data, np_dtype(held.dtype)).reshape(held.shape)
        return cast(Array, held.data)
