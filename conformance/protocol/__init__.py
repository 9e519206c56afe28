"""Defines the worker protocol, and the types of adapters in Python."""

from uop.conformance.protocol.types import (
    Hello,
    Limits,
    Outcome,
    Outputs,
    Problem,
    ProblemKind,
    Program,
)

__all__ = ["Hello", "Limits", "Outcome", "Outputs", "Problem", "ProblemKind", "Program"]
