"""One numpy rule per op, files named as the spec's sections; importing this enters them all."""

from uop.interpreter.rules import decomposed, elementwise, movement, reduce

__all__ = ["decomposed", "elementwise", "movement", "reduce"]
