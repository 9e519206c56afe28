"""Define the meaning of each op as a numpy rule, in files named after the sections of the spec.

Importing this package registers all rules in `rules.table`.
"""

from uop.interpreter.rules import codegen, decomposed, elementwise, extension, movement, reduce

__all__ = ["codegen", "decomposed", "elementwise", "extension", "movement", "reduce"]
