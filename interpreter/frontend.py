"""The evaluator of Tensors: the interpreter, with numpy arrays in and out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric import STORAGE, np_dtype
from uop.interpreter.values import Array
from uop.spec.dtype import DTYPES
from uop.spec.frontend.evaluator import Held

if TYPE_CHECKING:
    from uop.spec.uop import UOp

_DTYPES = {storage: DTYPES[name] for name, storage in STORAGE.items() if name != "index"}


@dataclass(frozen=True, slots=True)
class InterpreterEvaluator:
    """Evaluates by the reference interpreter, every value checked on the way."""

    def hold(self, data: object) -> Held | None:
        """A copy of a numpy array or scalar; None for anything else, and for other dtypes."""
        if not isinstance(data, np.ndarray | np.generic):
            return None
        dtype = _DTYPES.get(data.dtype)
        return None if dtype is None else Held(dtype, data.shape, np.array(data))

    def evaluate(self, root: UOp, inputs: Mapping[int, Held]) -> Held:
        result = evaluate(root, {slot: self.array(held) for slot, held in inputs.items()})
        return Held(root.dtype, root.shape, cast(Array, result))

    def array(self, held: Held) -> Array:
        if isinstance(held.data, bytes):
            return np.frombuffer(held.data, np_dtype(held.dtype)).reshape(held.shape)
        return cast(Array, held.data)
