"""Prints every node of a program with its value, as the interpreter reaches it."""

from __future__ import annotations

import click

from uop.interpreter.show import show_value
from uop.interpreter.tensor.evaluation import Observer
from uop.interpreter.values import Value
from uop.spec.text.literal import Line
from uop.spec.text.program import Scope, print_program
from uop.spec.uop import UOp


class Trace:
    """An observer of an evaluation; `check` is the next one."""

    def __init__(self, root: UOp, check: Observer) -> None:
        self._check = check
        scope, lines = Scope(), print_program(root).splitlines()
        for line in lines:
            scope.read(Line(line))
        self._lines = {scope.nodes[number]: line for number, line in enumerate(lines)}

    def __call__(self, u: UOp, value: Value) -> None:
        if u in self._lines:
            click.echo(self._lines[u])
            click.echo(show_value("    = ", value))
        self._check(u, value)
