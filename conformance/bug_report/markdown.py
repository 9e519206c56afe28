"""Prints a failure as a bug report in Markdown."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import replace

from uop.conformance.bug_report.failing import FailingCase
from uop.conformance.bug_report.tinygrad_script import Script, script_of
from uop.conformance.coverage.value_classes import named
from uop.conformance.judging.storage import file_text
from uop.conformance.protocol.untrusted import in_one_line
from uop.conformance.reference.answers.derivation import Derivation, Query, Step, derive
from uop.conformance.run.commands import uop_command
from uop.conformance.shrink.explain import special_classes
from uop.conformance.shrink.reduce import Candidate, is_computing
from uop.conformance.suite.levels.written import inputs_of
from uop.spec.dtype import dtypes
from uop.spec.errors import UopError
from uop.spec.ops.names import CONVERSIONS

MOST_OPS = 4
"""A title names at most this many ops."""
MOST_TEXT = 6000
"""A longer program is not printed, its file is named."""
WORDS = {
    "crash": "ends the process",
    "hang": "does not end",
    "leak": "changes with what ran before",
    "unsteady": "gives two results for one input",
    "not-rejected": "is accepted, and breaks a constraint",
}
"""What a symptom is called in a title, where it is no wrong result."""


def markdown(failing: FailingCase) -> str:
    """The report: title, result, derivation, program, how to reproduce it, environment."""
    sections = {
        "Result": _result(failing, _derivation(failing)),
        "Program": _program(failing),
        "Reproduce": _reproduction(failing),
        "Environment": _environment(failing),
    }
    parts = ("\n".join([f"## {name}", "", *lines]) for name, lines in sections.items())
    return "\n\n".join([f"# {title(failing)}", *parts]) + "\n"


def title(failing: FailingCase) -> str:
    """One sentence: the ops, the dtypes and what is wrong."""
    subject, failure = f"{failing.info.identity}: {_subject(failing)}", failing.failure
    if not failure.values:
        said = WORDS.get(failure.kind) or f"is refused: {in_one_line(failure.message)}"
        return f"{subject} {said}"
    first = failure.values[0]
    of = f" for {', '.join(first.inputs)}" if first.inputs else ""
    return f"{subject} gives {first.got} instead of {first.accepted}{of}"


def _subject(failing: FailingCase) -> str:
    """`IDIV` on int8, `CAST` from float32 to int8, a graph of 9 nodes."""
    if failing.case.root is None:
        return f"a program that breaks {failing.case.invalid}"
    nodes = [u for u in failing.case.root.toposort() if is_computing(u)]
    ops = list(dict.fromkeys(u.op for u in nodes))
    if not ops:
        return f"a copy of {failing.case.root.dtype.name}"
    if len(ops) > MOST_OPS:
        return f"a graph of {len(nodes)} nodes"
    listed = ", ".join(f"`{op.name}`" for op in ops)
    if len(nodes) == 1 and ops[0] in CONVERSIONS:
        return f"{listed} from {nodes[0].src[0].dtype.name} to {nodes[0].dtype.name}"
    operands = [s.dtype for u in nodes for s in u.src]
    read = dict.fromkeys(d.name for d in operands if d not in (dtypes.index, dtypes.void))
    return f"{listed} on {', '.join(read)}" if read else listed


def _derivation(failing: FailingCase) -> Derivation | None:
    """The derivation of the first wrong element; None for a program without meaning."""
    if failing.case.root is None:
        return None
    query = Query(output=failing.output, place=failing.place, profile=failing.case.profile)
    try:
        return derive(failing.as_judged, query)
    except UopError:
        # A program that must be judged by what its file states, or without any element.
        return None


def _result(failing: FailingCase, derivation: Derivation | None) -> Iterator[str]:
    if not failing.failure.values:
        yield in_one_line(failing.failure.message)
    else:
        yield "| element | inputs | got | right |"
        yield "|---|---|---|---|"
        for e in failing.failure.values:
            cells = (e.place, ", ".join(e.inputs) or "see below", e.got, e.accepted)
            yield f"| {' | '.join(cells)} |"
    if failing.case.root is not None:
        yield ""
        yield _ordinary(Candidate(failing.case.root, inputs_of(failing.case)))
    steps = [] if derivation is None else [step for step in derivation.steps if step.exact]
    if steps:
        yield ""
        place = f"[{','.join(map(str, failing.place))}]" if failing.place else ""
        yield f"In exact arithmetic, for output {failing.output}{place}:"
        yield ""
        yield from (line for step in steps for line in _step_lines(step))


def _step_lines(step: Step) -> Iterator[str]:
    """The arithmetic of a node, its meaning and the decisions of the spec about it."""
    facts = dict(step.reasons)
    numbers = [said.split()[0] for name, said in step.reasons if name == "reading"]
    by = f"; {', '.join(numbers)}" if numbers else ""
    yield f"- `{step.line.rpartition(' : ')[0] or step.line}`: {'; '.join(step.exact)}"
    if "meaning" in facts:
        yield f"  ({facts['meaning'].rstrip('.')}{by})"


def _ordinary(program: Candidate) -> str:
    special = sorted(named(special_classes(program)))
    if not special:
        return "Minimal in ordinary values: no input is NaN, infinite, -0, subnormal or at an end."
    return f"Needs special values: {', '.join(special)}."


def _program(failing: FailingCase) -> Iterator[str]:
    """The file of the case: program, inputs, accepted results."""
    text = file_text(replace(failing.case, comment=""))
    if len(text) > MOST_TEXT:
        yield f"Of {len(text):,} characters: see the file {failing.path}."
        return
    yield from ("```", text.rstrip(), "```")


def _reproduction(failing: FailingCase) -> Iterator[str]:
    yield "```sh"
    yield uop_command("replay", failing.path, failing.backend)
    yield "```"
    backend, _, device = failing.backend.partition(":")
    if backend != "tinygrad":
        return
    yield ""
    script = script_of(failing, device.upper() or "PYTHON")
    if not isinstance(script, Script):
        yield f"No script of tinygrad alone: {script}."
        return
    yield f"With tinygrad alone, by `DEV={script.environment} python SCRIPT`, {script.shown}:"
    yield ""
    yield from ("```python", script.text.rstrip(), "```")


def _environment(failing: FailingCase) -> Iterator[str]:
    info = failing.info
    yield f"- backend: {info.name} {info.version}".rstrip()
    yield f"- device: {info.device or 'not named'}"
    if info.variant:
        yield f"- variant: {info.variant}"
    if failing.is_run_here:
        yield f"- Python: {platform.python_version()}"
        yield f"- platform: {platform.platform()}"
    else:
        yield "- not run again: the values are those of the JSON report"
    yield f"- suite: uop {failing.suite}; profile: {failing.case.profile}"
