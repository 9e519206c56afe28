"""`uop explain`: prints what the spec says about a name, and the result of an op on values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from reprlib import repr
from typing import TYPE_CHECKING

import click

from uop.cli import names as listed
from uop.cli.names import BACKEND, Name
from uop.cli.programs.files import edition_option, native_option
from uop.cli.suite.options import file_option
from uop.conformance.checks import STRICT, OptionError
from uop.spec.errors import UopError

if TYPE_CHECKING:
    from uop.conformance.reference.answers.call import Call
    from uop.conformance.reference.page import Page
    from uop.conformance.reference.words import Section
    from uop.conformance.suite.own_cases import OwnCases
    from uop.spec.dtype import DType

OF_A_CASE = ("--element", "--batch", "--output", "--profile", "--cases", "--edition")


def print_ledger(context: click.Context, option: click.Parameter, wanted: bool) -> None:
    """Print what became of the rows of the documents, and end."""
    if not wanted:
        return
    from uop.spec.documents.decisions import decisions
    from uop.spec.documents.rows import Standing, rows

    sums = Counter((row.document, row.standing) for row in rows().values())
    names = {standing: standing.name.lower().replace("_", " ") for standing in Standing}
    click.echo(f"{'':8}" + "".join(f"{name:>14}" for name in names.values()))
    for document in dict.fromkeys(document for document, _ in sums):
        click.echo(f"{document:8}" + "".join(f"{sums[document, s]:14}" for s in Standing))
    for standing in list(Standing)[1:]:
        click.echo(f"\n{names[standing]}")
        chosen = [row for row in rows().values() if row.standing is standing]
        width = max(len(row.id) for row in chosen)
        for row in chosen:
            title = f": {decisions()[row.detail].title}" if row.detail in decisions() else ""
            click.echo(f"  {row.id:{width}}  {row.detail}{title}")
    context.exit()


@click.command("explain", context_settings={"ignore_unknown_options": True})
@click.argument("name", type=Name(listed.ops))
@click.argument("values", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--dtype", type=Name(listed.named_dtypes), metavar="DTYPE", help="The dtype of the values."
)
@click.option(
    "--to", type=Name(listed.named_dtypes), metavar="DTYPE", help="The target of CAST and BITCAST."
)
@click.option(
    "--backend",
    "backends",
    multiple=True,
    type=BACKEND,
    metavar="NAME",
    help="Also print the results of this backend; may be repeated.",
)
@click.option(
    "--element", metavar="I,J,...", help="For a case: which element; by default the first."
)
@click.option(
    "--batch", type=int, metavar="N", help="For a case: which set of inputs; by default 0."
)
@click.option("--output", type=int, metavar="N", help="For a case: which output; by default 0.")
@click.option(
    "--profile",
    metavar="PROFILE",
    help="For a case: the profile that judges it; by default strict.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="For a case: the seed of its run."
)
@file_option(
    "--cases",
    "folder",
    metavar="DIR",
    help="For a case of your own: the folder of its .uop file, as in its run.",
)
@edition_option
@native_option
@click.option(
    "--ledger",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=print_ledger,
    help="Count the rows of the documents by what became of them, and name each that is not "
    "implemented, with the reason.",
)
def explain(
    name: str,
    values: tuple[str, ...],
    dtype: str | None,
    to: str | None,
    backends: tuple[str, ...],
    element: str | None,
    batch: int | None,
    output: int | None,
    profile: str | None,
    seed: int,
    folder: Path | None,
    edition: str,
    native: bool,
) -> None:
    """Explain an op, a label, a decision or a word, or what a case demands.

    NAME is an op (PERMUTE), a word of an edition (VECTORIZE), a label (PERMUTE.c1), a decision
    (D-030), a knob (max_nan), a word of this project (constrained, figures), or a row of a document
    (2026-05/movement/PAD). Two names are compared. With values it evaluates the op on them. For the
    id of a case it shows step by step what one element may be and which knobs change it; one of
    your own needs --cases.

    \b
    uop explain figures
    uop explain IDIV MOD
    uop explain IDIV -7 2 --dtype int8
    uop explain CAST 300 --to uint8 --backend opencl
    uop explain MAX nan invalid --dtype float16
    uop explain op/MAX/float32/edges/0 --element 3
    uop explain cases/mine.uop/sum --cases DIR
    """
    if is_case(name):
        if values or dtype or to or backends:
            raise click.UsageError(f"a case takes {', '.join(OF_A_CASE)}, --seed")
        own = own_cases(name, folder, edition, native=native)
        for line in case_lines(name, seed, own, element, (batch or 0, output or 0), profile):
            click.echo(line)
    elif any(o is not None for o in (element, batch, output, profile, folder, edition or None)):
        raise click.UsageError(f"{', '.join(OF_A_CASE)} are for a case")
    elif len(values) == 1 and is_name(values[0]) and not (dtype or to or backends):
        explain_names(name, values[0])
    elif values:
        explain_values(name, values, dtype, to, backends)
    elif dtype or to or backends:
        raise click.UsageError("--dtype, --to and --backend are for values")
    else:
        explain_names(name)


def explain_names(name: str, other: str = "") -> None:
    """Print the page of a name, or what differs between the subjects of two."""
    from uop.conformance.reference.find import address_of, find
    from uop.conformance.reference.page import comparison, page_of

    subject = find(name)
    if other:
        print_page(comparison((name, other), subject, find(other)))
    else:
        print_page(page_of(subject), address_of(subject))


def is_name(word: str) -> bool:
    """Whether a word behind a name is another name: a value is a number, a word or a call."""
    from uop.conformance.reference.answers.call import INVALID
    from uop.spec.text.expression import WORDS

    is_value = word.casefold() in (*WORDS, INVALID) or any(c in word for c in "([:")
    return word[:1].isalpha() and not is_value


def print_page(page: Page, address: str = "") -> None:
    """Print a page, and at its end its address in the manual."""
    from uop.conformance.reference.words import Section

    lines = [page.title, *([f"  {page.lead}"] if page.lead else [])]
    for section in (*page.sections, *([Section("In the manual", text=address)] if address else [])):
        lines += ["", *section_lines(section)]
    click.echo("\n".join(lines))


def explain_values(
    name: str,
    values: tuple[str, ...],
    dtype: str | None,
    to: str | None,
    backends: tuple[str, ...],
) -> None:
    """Print the result of an op on values, and why."""
    from uop.conformance.reference.answers.call import call
    from uop.conformance.reference.find import find
    from uop.spec.registry import OpDef

    subject = find(name)
    if not isinstance(subject, OpDef):
        raise click.UsageError(f"{name} is no op: only an op takes values")
    made = call(subject, values, named_dtype(dtype), named_dtype(to))
    click.echo(made.result)
    facts = made.facts + backend_facts(made, backends)
    width = max(len(key) for key, _ in facts)
    before = ""
    for key, said in facts:
        click.echo(f"  {'' if key == before else key:{width}}  {said}")
        before = key


def named_dtype(name: str | None) -> DType | None:
    from uop.spec.nearest import did_you_mean
    from uop.spec.text.expression import NAMED_DTYPES

    if name is None or name in NAMED_DTYPES:
        return None if name is None else NAMED_DTYPES[name]
    expected = f"expected one of {', '.join(NAMED_DTYPES)}"
    near = did_you_mean(name, NAMED_DTYPES)
    raise click.BadParameter(f"no dtype {repr(name)}; {expected}{near}")


def section_lines(section: Section) -> list[str]:
    """The lines of a section: its title, and its content indented."""
    lines = [section.title.lower()] if section.title else []
    rows = [*([section.header] if len(section.header) > 2 else []), *section.table]
    if rows:
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]) - 1)]
        for row in rows:
            cells = [f"{c:{w}}" for c, w in zip(row, widths, strict=False)]
            lines.append("  " + "  ".join([*cells, row[-1]]))
    lines += [f"  {line}".rstrip() for line in (section.code + section.text).splitlines()]
    return lines


def is_case(name: str) -> bool:
    """Whether a name is the id of a case; ids of rows do not start with a level."""
    from uop.conformance.suite.case import LEVELS, OWN

    level, *rest = name.split("/")
    return (level in LEVELS and len(rest) > 1) or (level == OWN and rest != [])


def own_cases(id: str, folder: Path | None, edition: str, *, native: bool) -> OwnCases:
    """The cases of the folder that --cases names; a case of the user's own needs one."""
    from uop.conformance.native import check_native
    from uop.conformance.suite.case import OWN, CaseId
    from uop.conformance.suite.own_cases import OwnCases

    if folder is None and CaseId.parse(id).level == OWN:
        raise OptionError(f"{id}: expected --cases DIR")
    own = OwnCases.read(folder, edition)
    check_native((file for each, file in own.files.items() if each == id), native=native)
    return own


def case_lines(
    id: str, seed: int, own: OwnCases, element: str | None, at: tuple[int, int], profile: str | None
) -> Iterator[str]:
    """The accepted values of an element of a case, of the suite or the user's own, derived."""
    from uop.conformance.reference.answers.derivation import Query, derive
    from uop.conformance.run.options import profile_named
    from uop.conformance.suite.case import InvalidCase
    from uop.conformance.suite.generate import case_by_id
    from uop.spec.text.profile_text import parse_profile

    case = own.find(id) or case_by_id(id, seed)
    if why := own.meaningless(id):
        yield f"{id} is not judged: {why}"
        return
    if isinstance(case, InvalidCase):
        yield f"{id} is to be rejected: it breaks {case.label}; uop explain {case.label}"
        yield from (f"  {line}" for line in case.text.strip().splitlines())
        return
    default = parse_profile(STRICT if profile is None else profile_named(profile))
    demanded = own.profile(id, default)
    found = derive(case, Query(*at, place_of(element), demanded, own.stated(id, demanded)))
    yield f"{id} under the profile {demanded}: {found.where}"
    yield from (f"  {note}" for note in found.notes)
    for step in found.steps:
        yield f"  {step.line}"
        more = f"  ... and {step.left_out:,} more elements" if step.left_out else ""
        yield f"      {'  '.join(f'{place} = {said}' for place, said in step.elements)}{more}"
        yield from (f"      {name:8}  {said}" for name, said in step.reasons)
    yield f"demanded: {found.demanded}"
    if not found.knobs:
        yield "no knob of a profile changes that"
    for knob, said in found.knobs:
        yield f"with {knob}: {said}"


def place_of(element: str | None) -> tuple[int, ...] | None:
    """The indices of an element from the option."""
    if element is None:
        return None
    try:
        return tuple(int(word) for word in element.strip("[]").split(",") if word.strip())
    except ValueError:
        said = f"expected numbers separated by commas, found {element!r}"
        raise OptionError(f"--element: {said}") from None


def backend_facts(made: Call, names: tuple[str, ...]) -> list[tuple[str, str]]:
    """The result of each backend, and whether it is accepted."""
    from uop.conformance.protocol.untrusted import in_one_line
    from uop.conformance.workers.single import run_on
    from uop.interpreter.show import show_value

    facts = []
    for name in names:
        try:
            results = run_on(name, made.root, dict(made.inputs))
        except UopError as error:
            facts.append((name, in_one_line(str(error))))
            continue
        fine = bool(made.accepted.contains(results[0].data).all())
        verdict = "accepted" if fine else "NOT accepted"
        facts.append((name, f"{show_value('', results[0])}  {verdict}"))
    return facts
