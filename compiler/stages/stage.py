"""A stage of the compiler, and the setting that a program is compiled in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import getdoc, getmodule

from uop.compiler.rewriting.rewrite import Fired
from uop.compiler.targets.target import Target
from uop.spec.kernel.forms import Form
from uop.spec.kernel.optimization import Optimization
from uop.spec.uop import UOp

Sequences = Sequence[Sequence[Optimization]]
"""The sequence of each kernel, by its number; further kernels have none."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a program is compiled for."""

    target: Target
    optimizations: Sequences | None = None
    quick: bool = False
    """Whether no form is verified and no stage renders: the bundle of the program makes its source.
    """


@dataclass(frozen=True, slots=True)
class Stage:
    """A step of the compiler: a rewrite of programs, and the form of its output."""

    name: str
    run: Callable[[UOp, Setting, Fired], UOp]
    form: Callable[[Setting], Form]
    rules: Callable[[Target], Sequence[str]] = lambda _: ()
    """The names of its rules."""

    @property
    def about(self) -> str:
        """Its purpose, in one sentence: the first one of its module."""
        paragraph = (getdoc(getmodule(self.run)) or "").partition("\n\n")[0]
        return " ".join(paragraph.partition(": ")[2].split())
