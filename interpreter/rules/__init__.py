"""One numpy rule per op, files named as the spec's sections; importing this enters them all."""

from uop.interpreter.rules import (
    codegen,
    decomposed,
    elementwise,
    extension,
    movement,
    reduce,
)

__all__ = ["codegen", "decomposed", "elementwise", "extension", "movement", "reduce"]
