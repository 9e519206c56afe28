"""What an adapter of a tensor library needs: a walk, and a builder with about a dozen methods."""

from uop.conformance.adapters.backend import Inputs, JointBackend, LibraryBackend, Run, imported
from uop.conformance.adapters.builder import Builder, identity_of
from uop.conformance.adapters.walk import build, values_of
from uop.spec.errors import UnsupportedError

__all__ = [
    "Builder",
    "Inputs",
    "JointBackend",
    "LibraryBackend",
    "Run",
    "UnsupportedError",
    "build",
    "identity_of",
    "imported",
    "values_of",
]
