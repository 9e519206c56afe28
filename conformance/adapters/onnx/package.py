"""The package onnx, imported on use."""

from __future__ import annotations

from functools import cache
from typing import Any

from uop.conformance.adapters.backend import imported

TESTED = ("1.21", "1.22", "1.23")
"""The versions that the adapters were tested with."""
PARTS = ("checker", "defs", "external_data_helper", "helper", "numpy_helper")


@cache
def onnx() -> Any:
    """The package; UnsupportedError with the line that installs it."""
    package, *_ = imported("onnx", "onnx", *(f"onnx.{part}" for part in PARTS))
    return package


def decode_error() -> type[Exception]:
    """What the package raises for bytes that are no message."""
    (below,) = imported("onnx", "google.protobuf.message")
    error: type[Exception] = below.DecodeError
    return error
