"""Imports all declarations, which enters them in the registry."""

from uop.spec.ops import (  # noqa: F401
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
