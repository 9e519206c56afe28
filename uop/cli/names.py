"""Names on the command line: of ops, dtypes, levels, backends, targets; completed by a shell."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

Known = Callable[[], Iterable[str]]


class Name(click.ParamType):  # type: ignore[type-arg]  # no older click takes an argument
    """A name of a list; what is not in it is left to who knows what else there may be."""

    name = "name"

    def __init__(self, known: Known, *, shown: bool = False) -> None:
        self.known, self.shown = known, shown

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name as it is written in the list."""
        return {name.casefold(): name for name in self.known()}.get(value.casefold(), value)

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str | None:
        """The choices, where they are so few that help can show them."""
        return f"[{'|'.join(self.known())}]" if self.shown else None

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Every name that begins so."""
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


class BackendName(Name):
    """A backend; what stands behind the colon is for the backend to read."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        first, colon, rest = value.partition(":")
        return super().convert(first, param, ctx) + colon + rest


def ops() -> list[str]:
    """The names of ops, and the one that stands for many."""
    from uop.conformance.suite.case import MIXED
    from uop.spec.ops.names import Op

    return [*Op.__members__, MIXED]


def dtypes() -> list[str]:
    """The names of dtypes, and the one that stands for many."""
    from uop.conformance.suite.case import MIXED
    from uop.spec.dtype import DTYPES

    return [*DTYPES, MIXED]


def named_dtypes() -> list[str]:
    """The names of dtypes that a value may have, long and short."""
    from uop.spec.text.expression import NAMED_DTYPES

    return list(NAMED_DTYPES)


def levels() -> tuple[str, ...]:
    """The levels of the suite, and that of the adopter."""
    from uop.conformance.suite.case import ALL_LEVELS

    return ALL_LEVELS


def efforts() -> tuple[str, ...]:
    """How many cases may be run."""
    from uop.conformance.suite.case import EFFORTS

    return EFFORTS


def targets() -> list[str]:
    """The targets of the compiler."""
    from uop.compiler.pipeline import TARGETS

    return list(TARGETS)


def stages() -> list[str]:
    """The stages of the compiler."""
    from uop.spec.kernel.forms import FORMS

    return list(FORMS)


def backends() -> list[str]:
    """The backends that installed packages bring."""
    from uop.conformance.backends import names

    return names()


BACKEND = BackendName(backends)
