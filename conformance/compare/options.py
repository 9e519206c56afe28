"""The options of a comparison that choose the cases, which all of its backends share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from uop.conformance.report.options import ReportedOptions, in_words
from uop.conformance.run.commands import uop_command

OPTIONS = {
    "levels": "--level",
    "ops": "--op",
    "dtypes": "--dtype",
    "skip_ops": "--skip-op",
    "skip_dtypes": "--skip-dtype",
    "seed": "--seed",
    "examples": "--examples",
    "effort": "--effort",
    "seconds": "--time",
}
"""The options of the command line, by their fields."""
SELECTING = (*OPTIONS, "cases", "folder")
"""The fields of the options of a report that choose its cases."""


def compare_command(names: Iterable[str], options: ReportedOptions) -> str:
    """The command that judges these backends again by the same cases."""
    plain = {field.name: field.default for field in fields(ReportedOptions)}
    values = {name: getattr(options, name) for name in OPTIONS}
    chosen = {name: value for name, value in values.items() if value != plain[name]}
    words = (word for name, value in chosen.items() for word in (OPTIONS[name], in_words(value)))
    return uop_command("compare", *names, *words)
