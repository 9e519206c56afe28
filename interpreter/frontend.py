"""Evaluate Tensors of the frontend with numpy arrays, by the interpreter or another backend."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import STORED, Array, np_dtype
from uop.spec.conditions.labels import invalid
from uop.spec.errors import InvalidError
from uop.spec.frontend.evaluator import Held

if TYPE_CHECKING:
    from uop.spec.uop import UOp

CPU = (1, 0)
"""The device of DLPack whose memory numpy shares."""
READ_ONLY = (1, 0)
"""The first version of DLPack that can mark memory as read-only."""


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
        array = cast(Array, held.data).view()
        array.flags.writeable = False
        return array

    def text(self, held: Held) -> str:
        return np.array2string(self.array(held), separator=", ", prefix="Tensor(")

    def adopt(self, data: Any) -> Held:
        if not hasattr(data, "__dlpack__") or not hasattr(data, "__dlpack_device__"):
            raise _not_adopted(f"a {type(data).__name__} without them")
        kind, number = data.__dlpack_device__()
        if (int(kind), number) != CPU:
            raise _not_adopted(f"memory of device {int(kind)}:{number}, expected 1:0, the CPU")
        try:
            array = np.from_dlpack(data)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise _not_adopted(f"{error}") from error
        dtype = STORED.get(array.dtype)
        if dtype is None:
            raise _not_adopted(f"numbers of numpy's dtype {array.dtype}, which no dtype stores")
        return Held(dtype, array.shape, np.require(array, requirements="C"))

    def lend(self, held: Held, options: Mapping[str, Any]) -> Any:
        array, version = self.array(held), options.get("max_version")
        if options.get("copy") is None and (version is None or version < READ_ONLY):
            # The consumer would write to memory that other Tensors share.
            array = array.copy()
        try:
            return array.__dlpack__(**options)
        except BufferError as error:
            raise invalid("TENSOR.c8", held.dtype.name, str(error)) from error


def _not_adopted(found: str) -> InvalidError:
    return invalid("TENSOR.c7", "from_dlpack", found)
