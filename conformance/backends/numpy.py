"""Runs numpy as a backend: a control."""

from __future__ import annotations

import numpy as np

from uop.conformance.adapters.array_api import ArrayBuilder
from uop.conformance.adapters.backend import LibraryBackend, Run
from uop.conformance.adapters.walk import build, values_of
from uop.spec.dtype import VALUES
from uop.spec.uop import UOp


class NumpyBackend(LibraryBackend):
    """numpy, op by op."""

    name, distribution, builder, dtypes = "numpy", "numpy", ArrayBuilder, frozenset(VALUES)
    tested = ("2.1", "2.2", "2.3", "2.4", "2.5")

    def start(self) -> str:
        np.seterr(all="ignore")
        return "CPU"

    def compiled(self, root: UOp) -> Run:
        values = values_of(root)
        return lambda inputs: build(values, ArrayBuilder(np, inputs))
