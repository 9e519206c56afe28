"""Imports all declarations, which enters them in the registry."""

from uop.spec.ops import (
    call,
    codegen,
    decomposed,
    elementwise,
    extension,
    load_store,
    marker,
    memory,
    movement,
    ordering,
    reduce,
    source,
    variables,
)

__all__ = [
    "call",
    "codegen",
    "decomposed",
    "elementwise",
    "extension",
    "load_store",
    "marker",
    "memory",
    "movement",
    "ordering",
    "reduce",
    "source",
    "variables",
]
