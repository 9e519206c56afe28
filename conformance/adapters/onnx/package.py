"""The package onnx, imported on use."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from uop.spec.errors import UnsupportedError

PARTS = ("checker", "defs", "external_data_helper", "helper", "numpy_helper")


@cache
def onnx() -> Any:
    """The package; UnsupportedError with the line that installs it."""
    try:
        for part in PARTS:
            import_module(f"onnx.{part}")
    except ImportError as error:
        raise UnsupportedError(f"ONNX needs `pip install 'uop[onnx]'`: {error}") from None
    return import_module("onnx")


def decode_error() -> type[Exception]:
    """What the package raises for bytes that are no message."""
    error: type[Exception] = import_module("google.protobuf.message").DecodeError
    return error
