"""Define the meaning of each op as a numpy rule, in files named after the sections of the spec.

Importing this package registers all rules in `rules.table`.
"""

from uop.interpreter.rules import (  # noqa: F401
    codegen,
    decomposed,
    elementwise,
    extension,
    movement,
    reduce,
)
