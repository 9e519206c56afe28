"""All declarations, one file per section of the spec's tables; importing this enters them."""

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
