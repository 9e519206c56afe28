"""A library whose functions have moved since its adapters were written, and these adapters."""

from __future__ import annotations

from types import ModuleType
from typing import ClassVar

import numpy as np

from uop.conformance.adapters import Inputs, LibraryBackend, Run, build, values_of
from uop.conformance.adapters.array_api import ArrayBuilder
from uop.interpreter.numeric.storage import Array
from uop.spec.dtype import DType, dtypes
from uop.spec.uop import UOp

TESTED = ("1",)
"""Of numpy, which stands behind the library, another version is installed."""


def without(*names: str) -> ModuleType:
    """numpy without some functions."""
    module = ModuleType("library")
    vars(module).update({name: f for name, f in vars(np).items() if name not in names})
    return module


class Adapter(LibraryBackend):
    """Written for the library as it was; nothing of it is wrong."""

    name, distribution, builder = "moved", "numpy", ArrayBuilder
    dtypes: ClassVar[frozenset[DType]] = frozenset({dtypes.float32, dtypes.int32, dtypes.bool})
    tested: tuple[str, ...] = TESTED
    library = np

    def compiled(self, root: UOp) -> Run:
        values = values_of(root)
        return lambda inputs: build(values, self.made(inputs))

    def made(self, inputs: Inputs) -> ArrayBuilder:
        return ArrayBuilder(self.library, inputs)


class Untested(Adapter):
    """It fits all the same."""


class Moved(Adapter):
    """The library lacks a function that the self-test calls."""

    library = without("multiply")


class PartlyMoved(Adapter):
    """It lacks one that the self-test does not call."""

    library = without("log2")


class PartlyMovedAndWrong(Adapter):
    """It has another meaning for one beside that."""

    library = without("log2")
    library.add = np.subtract


class NotStarting(Adapter):
    """What it reads at the start has moved."""

    def start(self) -> str:
        return str(self.library.device_of_all)


def refusing(*arguments: object) -> Array:
    raise AttributeError("'int' object has no attribute 'const'")


class Refusing(Adapter):
    """Each function of the library takes its arguments in another order."""

    def made(self, inputs: Inputs) -> ArrayBuilder:
        refusing(inputs)
        return super().made(inputs)


class UnderTest(Refusing):
    """A class that states no versions is itself judged."""

    tested = ()


class OwnFault(Adapter):
    """Its builder has a fault of its own."""

    def made(self, inputs: Inputs) -> ArrayBuilder:
        return Faulty(self.library, inputs)


class Faulty(ArrayBuilder):
    def elementwise(self, op, dtype, xs):  # type: ignore[no-untyped-def]
        return super().elementwise(op, dtype, xs) if op.name != "SQRT" else xs[0].square_root()


class Nothing(UnderTest):
    """It returns no results: what fails is ours, and the fault is its own."""

    def compiled(self, root: UOp) -> Run:
        return lambda inputs: None  # type: ignore[return-value]
