"""Types of command-line names (ops, dtypes, levels, backends, targets), with shell completion."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import ClassVar

import click
from click.shell_completion import CompletionItem

Known = Callable[[], Iterable[str]]


class Name(click.ParamType):  # type: ignore[type-arg]  # no older click takes an argument
    """A name of a list, in any case of letters; other names pass, and the command checks them."""

    name = "name"

    def __init__(self, known: Known, *, shown: bool = False) -> None:
        self.known, self.shown = known, shown

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The spelling of the name in the list."""
        return {name.casefold(): name for name in self.known()}.get(value.casefold(), value)

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str | None:
        """The choices for the help text, if they are few."""
        return f"[{'|'.join(self.known())}]" if self.shown else None

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The names with this prefix."""
        fold = incomplete.casefold()
        return [CompletionItem(n) for n in self.known() if n.casefold().startswith(fold)]


class NameList(Name):
    """Names separated by commas."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        words = (super(NameList, self).convert(word, param, ctx) for word in value.split(","))
        return ",".join(words)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        before, comma, last = incomplete.rpartition(",")
        found = super().shell_complete(ctx, param, last)
        return [CompletionItem(before + comma + str(item.value)) for item in found]


class StageName(Name):
    """A stage of the compiler, also by the name that the documents give it."""

    IN_DOCUMENTS: ClassVar = {
        "instruction selection": "select",
        "register/memory plan": "plan",
        "memory plan": "plan",
    }

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        words = value.casefold().replace("_", " ")
        return super().convert(self.IN_DOCUMENTS.get(words, value), param, ctx)


class BackendName(Name):
    """A backend; the backend itself reads the part after the colon."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        first, colon, rest = value.partition(":")
        return super().convert(first, param, ctx) + colon + rest


def ops() -> list[str]:
    """The names of ops, and the names of groups of ops."""
    from uop.conformance.suite.case import MIXED
    from uop.spec.ops.names import Op

    return [*Op.__members__, MIXED]


def dtypes() -> list[str]:
    """The names of dtypes, and the names of groups of dtypes."""
    from uop.conformance.suite.case import MIXED
    from uop.spec.dtype import DTYPES

    return [*DTYPES, MIXED]


def drawn() -> tuple[str, ...]:
    """The levels that a fuzz run draws."""
    from uop.conformance.suite.case import LEVELS

    return tuple(level for level in LEVELS if level != "invalid")


def stages() -> list[str]:
    """The stages of the compiler."""
    from uop.compiler.pipeline import STAGES

    return [stage.name for stage in STAGES]


def backends() -> list[str]:
    """The backends of installed packages."""
    from uop.conformance.backends import names

    return names()


def names_in(module: str, table: str) -> Callable[[], list[str]]:
    """The names in a table of a module, which is imported on use."""
    return lambda: list(getattr(import_module(module), table))


named_dtypes = names_in("uop.spec.text.expression", "NAMED_DTYPES")
"""The long and short names of dtypes that a value may have."""
levels = names_in("uop.conformance.suite.case", "ALL_LEVELS")
"""The levels of the suite, and that of the user's own cases."""
efforts = names_in("uop.conformance.suite.case", "EFFORTS")
editions = names_in("uop.spec.editions", "EDITIONS")
targets = names_in("uop.compiler.pipeline", "TARGETS")
BACKEND = BackendName(backends)
