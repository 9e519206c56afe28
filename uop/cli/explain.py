"""`uop explain`: what the spec says, and what an op gives on values."""

from __future__ import annotations

from reprlib import repr
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from uop.conformance.explain.call import Call
    from uop.conformance.explain.section import Section
    from uop.spec.dtype import DType

JUDGES = ("interpreter", "adversary")
"""Backends that are the reference itself."""


@click.command("explain", context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("values", nargs=-1, type=click.UNPROCESSED)
@click.option("--dtype", metavar="DTYPE", help="The dtype of the values.")
@click.option("--to", metavar="DTYPE", help="The target of CAST and BITCAST.")
@click.option("--no-backends", is_flag=True, help="Ask the interpreter only.")
def command(
    name: str, values: tuple[str, ...], dtype: str | None, to: str | None, no_backends: bool
) -> None:
    """Explain an op, a label, a decision or a word, or what an op gives on values.

    NAME is an op (PERMUTE), a word of an edition (VECTORIZE), a label (PERMUTE.c1), a decision
    (D-030), a knob (max_nan), a word of this project (constrained; `figures` for all that stands
    under a verdict), or a row of a document (2026-05/movement/PAD). With values it evaluates the op
    on them, and asks every backend that can be used here.

    \b
    uop explain figures
    uop explain IDIV -7 2 --dtype int8
    uop explain CAST 300 --to uint8
    uop explain MAX nan invalid --dtype float16
    """
    from uop.conformance.explain.find import find
    from uop.conformance.explain.page import page_of
    from uop.spec.registry import OpDef

    subject = find(name)
    if not values:
        if dtype or to:
            raise click.UsageError("--dtype and --to are for values")
        page = page_of(subject)
        lines = [page.title, *([f"  {page.lead}"] if page.lead else [])]
        for section in page.sections:
            lines += ["", *section_lines(section)]
        click.echo("\n".join(lines))
        return
    if not isinstance(subject, OpDef):
        raise click.UsageError(f"{name} is no op: only an op takes values")
    from uop.conformance.explain.call import call

    made = call(subject, values, named_dtype(dtype), named_dtype(to))
    click.echo(made.result)
    facts = made.facts + ([] if no_backends else backend_facts(made))
    width = max(len(key) for key, _ in facts)
    before = ""
    for key, said in facts:
        click.echo(f"  {'' if key == before else key:{width}}  {said}")
        before = key


def named_dtype(name: str | None) -> DType | None:
    from uop.spec.expression import NAMED_DTYPES

    if name is None or name in NAMED_DTYPES:
        return None if name is None else NAMED_DTYPES[name]
    raise click.BadParameter(f"no dtype {repr(name)}; expected one of {', '.join(NAMED_DTYPES)}")


def section_lines(section: Section) -> list[str]:
    """A section on a screen: its title, and what it holds, indented."""
    lines = [section.title.lower()] if section.title else []
    rows = [*([section.header] if len(section.header) > 2 else []), *section.table]
    if rows:
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]) - 1)]
        for row in rows:
            cells = [f"{c:{w}}" for c, w in zip(row, widths, strict=False)]
            lines.append("  " + "  ".join([*cells, row[-1]]))
    lines += [f"  {line}".rstrip() for line in (section.code + section.text).splitlines()]
    return lines


def backend_facts(made: Call) -> list[tuple[str, str]]:
    """What each usable backend returns, and whether that is accepted."""
    from uop.cli.backend import run_on
    from uop.conformance.backends import names
    from uop.interpreter.show import show_value
    from uop.spec.errors import BackendError, UopError

    facts = []
    for name in names():
        if name in JUDGES:
            continue
        try:
            results = run_on(name, made.root, dict(made.inputs))
        except BackendError as error:
            if "did not start" not in str(error):
                facts.append((name, str(error).splitlines()[0]))
            continue
        except UopError as error:
            facts.append((name, str(error).splitlines()[0]))
            continue
        fine = bool(made.accepted.contains(results[0].data).all())
        verdict = "accepted" if fine else "NOT accepted"
        facts.append((name, f"{show_value('', results[0])}  {verdict}"))
    return facts
