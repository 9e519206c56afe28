"""What is said to a backend and what it replies: the worker protocol, and the types of adapters."""

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
