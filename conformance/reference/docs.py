"""Writes the generated pages of the folder docs: `python -m uop.conformance.reference.docs docs`.

A page in docs/ops has what `uop explain` prints about an op and its labels, drawings of its
example, how judged systems differ, the source that it becomes, and the stories that link to it.
docs/labels.md has the other labels, docs/glossary.md the words of the glossary, docs/rules.md the
rules of the compiler's table, docs/editions.md the words of editions, docs/documents.md the rows of
documents, docs/editors the grammar of program files, docs/stories/pictures what the stories show.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from uop.compiler.pipeline import compile
from uop.compiler.targets.cuda import CUDA
from uop.compiler.targets.opencl import OPENCL
from uop.conformance.compare.matrix import MARKS, State
from uop.conformance.reference.examples import Example
from uop.conformance.reference.find import Conditions, Words, conditions, find, rule_names, slug
from uop.conformance.reference.glossary import FINDINGS, LEGEND, chapters, legend, table_of
from uop.conformance.reference.page import Page, op_page, page_of, rule_page, words_page
from uop.conformance.reference.pictures import PICTURES, cells_svg, pictures
from uop.conformance.reference.words import Section, field_words, grouped
from uop.spec.conditions.clauses import OF_ALL_OPS
from uop.spec.distribution import load_additions
from uop.spec.documents.decisions import decisions
from uop.spec.documents.rows import rows
from uop.spec.dtype import DTYPES
from uop.spec.editions import EDITIONS
from uop.spec.errors import UopError
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, Clause, Constraint, OpDef, labels
from uop.spec.text.draw import svg
from uop.spec.text.expression import CHOICES
from uop.spec.text.json_form import to_json
from uop.spec.text.uop_file import DIRECTIVES

HEAD = "<!-- Written by `python -m uop.conformance.reference.docs docs`; not by hand. -->\n"
ROOT = "../.."
DECISIONS = f"{ROOT}/spec/DECISIONS.md"
OPS = "ops"
GRAPHS, CELLS = "graphs", "cells"
MATRIX = "matrix.md"
SEE_MATRIX = f"\n[The matrix](../{MATRIX}) says how they were judged, and shows each failure.\n"
MOVEMENT, SOURCE = "movement", "As OpenCL and CUDA"
LAST = (
    SOURCE, "Constraints", "When it runs", "Properties", "Decomposition", "Gradient", "Editions",
    "In the documents", "Decisions",
)  # fmt: skip
"""The sections that end the page of an op."""
FROM_ROWS = ("In the documents", "Decisions")
"""The sections of a word that docs/documents.md has."""
LEADING_TO = {"Knobs": "profiles", "Words": "glossary"}
"""The page that a table's first column leads to, by the title of its section."""
STORIES = "stories"
TO_OP = re.compile(r"\(\.\./ops/([A-Z0-9]+)\.md")
SOURCES = (OPENCL, CUDA)
MOST_LINES = 40
"""A longer source shows more of the example than of the op."""
INDEX = "README.md"
ARGS = "args.md"
PATH = re.compile(r"\b(?:docs|spec)/[\w/-]+\.md")
"""A page as the words of the glossary name it."""
STATES = {mark: state for state, mark in MARKS.items()}
Systems = Mapping[str, str]
"""The square of each system."""
FAILS = MARKS[State.FAILS]

GRAMMAR = "editors/vscode/uop.tmLanguage.json"
"""The path of the grammar in docs/."""
NUMBER = (
    r"[-+]?(?:0[xX][0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?[pP][-+]?[0-9]+"
    r"|[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|(?i:inf)\b)"
    r"|\bnan:0x[0-9a-fA-F]+|\b(?i:nan)\b"
)


def grammar() -> str:
    """The grammar as JSON. The first rule that matches at a place wins."""
    ops = {op.name for op in Op} | {word for e in EDITIONS.values() for word in e.words}
    rules = (
        ("comment.line.semicolon", r";.*$"),
        ("string.quoted.double", r'"(?:[^"\\]|\\.)*"'),
        ("string.unquoted", r"\b(?:base64|zlib|hex|fill|range):\S*"),
        ("keyword.control", rf"^\s*(?:{_any(['edition', *DIRECTIVES])})(?!\S)"),
        ("variable.other", r"%[0-9]+"),
        ("variable.parameter", r"\b[a-z_]+(?=\s*=)"),
        ("constant.numeric", NUMBER),
        ("constant.language", rf"\b(?:{_any(['any', 'true', 'false'])})\b"),
        ("storage.type", rf"\b(?:{_any(DTYPES)})\b"),
        ("support.function", rf"\b(?:{_any(ops)})\b"),
        ("constant.other", rf"\b(?:{_any(CHOICES - ops)})\b"),
    )
    written = {
        "name": "UOp",
        "scopeName": "source.uop",
        "fileTypes": ["uop"],
        "patterns": [{"name": f"{name}.uop", "match": match} for name, match in rules],
    }
    return json.dumps(written, indent=2) + "\n"


def _any(words: Iterable[str]) -> str:
    """A choice of words, the longest first."""
    return "|".join(sorted(words, key=lambda word: (-len(word), word)))


def files(folder: Path) -> dict[str, str]:
    """Every generated file by its path in the folder docs, whose matrix of systems is read.

    The folder of a package that adds ops has none.
    """
    matrix = folder / MATRIX
    judged = matrix_of(matrix.read_text("utf-8")) if matrix.exists() else {}
    pages = {name: written() for name, written in LISTS.items()} | pictures()
    pages |= {f"{OPS}/{INDEX}": _index(), f"{OPS}/{ARGS}": _args()}
    told = stories(folder)
    for op, declaration in DECLARATIONS.items():
        page = op_page(declaration)
        pages[f"{OPS}/{op.name}.md"] = markdown(
            page, declaration, judged.get(op.name, {}), told.get(op.name, [])
        )
        if page.example is not None:
            pages[f"{OPS}/{GRAPHS}/{op.name}.svg"] = svg(page.example.root)
            if declaration.section == MOVEMENT:
                pages[f"{OPS}/{CELLS}/{op.name}.svg"] = cells_svg(page.example)
    return pages


def write(folder: Path) -> None:
    """Bring a folder up to date; remove the pages of ops that no longer exist."""
    wanted = files(folder)
    for path in stale(folder, wanted):
        if path in wanted:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(wanted[path], encoding="utf-8")
        else:
            (folder / path).unlink()


def stale(folder: Path, wanted: dict[str, str]) -> list[str]:
    """The paths in a folder that are missing, changed, or left over in ops."""
    there = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in [
            *map(folder.joinpath, LISTS),
            *(folder / OPS).rglob("*"),
            *(folder / PICTURES).glob("*.svg"),
        ]
        if path.suffix in (".md", ".svg", ".json") and path.is_file()
    }
    return sorted(p for p in wanted.keys() | there.keys() if wanted.get(p) != there.get(p))


def glossary() -> str:
    """Every word by chapter, then the legend of the figures under a verdict."""
    parts = [f"{HEAD}# Glossary\n", "`uop explain WORD` prints the same.\n"]
    for title, words in chapters().items():
        parts.append(f"## {title}\n")
        for term in words:
            said = " ".join(filter(None, (term.says, term.more)))
            linked = PATH.sub(lambda m: f"[{m[0]}]({os.path.relpath(m[0], 'docs')})", said)
            parts += [f"### {term.word}\n", f"{linked}\n"]
    parts += [f"## {LEGEND.capitalize()}\n", *_table(("printed", "counts"), legend().lines)]
    return "\n".join(parts) + "\n"


def rules() -> str:
    """The rules of the compiler's table in their order."""
    parts = [f"{HEAD}{_head('rules')}"]
    for page in map(rule_page, rule_names()):
        (section,) = page.sections
        code = (tuple(f"`{cell}`" if cell else "" for cell in row) for row in section.table)
        name, _, dtype = page.title.partition(" on ")
        about = " ".join(filter(None, (f"Of nodes of dtype {dtype}." * bool(dtype), page.lead)))
        parts += [f"## {name}\n", *([f"{about}\n"] if about else [])]
        parts += [*_table(section.header, code), ""]
    return "\n".join(parts)


def other_labels() -> str:
    """The labels that the page of no op has, by what they are about."""
    parts = [f"{HEAD}{_head('labels')}"]
    others: dict[str, Conditions | Clause] = {c.label: c for c in OF_ALL_OPS}
    others |= {label: c for label, c in conditions().items() if label not in labels()}
    for about, same in groupby(sorted(others), lambda label: label.partition(".")[0]):
        parts.append(f"## {about}\n")
        for label in same:
            subject = others[label]
            told = _meanings(subject) if isinstance(subject, Conditions) else _broken(subject)
            parts += [f"### {label}\n", *told]
    return "\n".join(parts)


def words_of_editions() -> str:
    """The words that only editions have: what each means by it, with an example."""
    parts = [f"{HEAD}{_head('editions')}"]
    for name in sorted({name for edition in EDITIONS.values() for name in edition.words}):
        word = find(name)
        if isinstance(word, Words):
            page = words_page(word.name, word.words)
            parts += [f"## {name}\n", f"{escaped(page.lead)}\n"]
            for section in page.sections:
                if section.title not in FROM_ROWS:
                    parts += [f"{section.title}:\n", *_content(section, "uop")]
    return "\n".join(parts)


def documents() -> str:
    """The rows of each document, each with an anchor."""
    parts = [f"{HEAD}{_head('documents')}"]
    in_order = sorted(rows().values(), key=lambda row: row.document)
    for document, same in groupby(in_order, lambda row: row.document):
        parts += [f"## {document}\n", *_table(("row", "says", "here"), ())]
        for row in same:
            line = _row((f"`{row.id.partition('/')[2]}`", row.says, row.status))
            parts.append(line.replace("| ", f'| <a id="{row.id}"></a>', 1))
        parts.append("")
    # This page stands one folder above those that have links of the same form.
    return "\n".join(parts).replace(f"]({ROOT}/", "](../")


def stories(folder: Path) -> dict[str, list[str]]:
    """By op the links to the stories that link to it."""
    told: dict[str, list[str]] = {}
    for path in sorted((folder / STORIES).glob("[!R]*.md")):
        text = path.read_text("utf-8")
        title = text.partition("\n")[0].removeprefix("# ")
        for op in dict.fromkeys(TO_OP.findall(text)):
            told.setdefault(op, []).append(f"[{title}](../{STORIES}/{path.name})")
    return told


def _meanings(subject: Conditions) -> Iterator[str]:
    """What a label means, and where."""
    for where, title in grouped((condition.title, place) for place, condition in subject.places):
        known = f" In {where.strip()}." if where.strip() else ""
        yield f"{escaped(title)}.{known}\n"


def markdown(page: Page, declaration: OpDef, judged: Systems, told: Sequence[str]) -> str:
    """The page of an op."""
    name = declaration.op.name
    sections = {section.title: _section(section) for section in page.sections}
    sections["Constraints"] = _labelled("Constraints", declaration.constraints)
    if declaration.clauses:
        sections["When it runs"] = _labelled("When it runs", declaration.clauses)
    if page.example is not None:
        sections["Example"] += _pictures(declaration)
        sections[SOURCE] = _source(page.example)
    if judged:
        sections["Judged systems"] = _section(judged_section(judged)) + SEE_MATRIX
    sections |= {title: sections.pop(title) for title in LAST if title in sections}
    formula = formulas().get(name)
    parts = [
        f"{HEAD}# {name}\n",
        f"`{page.title}` · {declaration.section}\n",
        f"{escaped(page.lead)}\n",
        *([f"```math\n{formula}\n```\n"] if formula else []),
        *([f"Told as a story: {' · '.join(told)}\n"] if told else []),
        *filter(None, sections.values()),
    ]
    return "\n".join(parts)


def formulas() -> Mapping[str, str]:
    """What ops compute, in LaTeX, by their names."""
    return table_of("formulas")


def _head(page: str) -> str:
    """How a page of a list begins."""
    return str(table_of("heads")[page])


def _pictures(declaration: OpDef) -> str:
    """The cells before and after a movement op; the example as a graph."""
    name = declaration.op.name
    cells = f"\n![The cells before and after]({CELLS}/{name}.svg)\n"
    graph = f"\n![The example as a graph]({GRAPHS}/{name}.svg)\n"
    return cells * (declaration.section == MOVEMENT) + graph


def _labelled(title: str, conditions: Iterable[Constraint | Clause]) -> str:
    """Each condition under its label, with a program that breaks it and the error."""
    parts = [f"## {title}\n"]
    for condition in conditions:
        parts += [f"### {condition.label}\n", *_broken(condition)]
    return "\n".join(parts)


def _broken(condition: Constraint | Clause) -> Iterator[str]:
    """What must hold, a program that breaks it, and the error."""
    page = page_of(condition)
    yield f"{escaped(page.lead.partition(': ')[2])}\n"
    for section in page.sections:
        yield from _content(section, "text" if section.title == "Said" else "uop")


def _source(example: Example) -> str:
    """The kernels that an op becomes: of itself where it is a program, else of its example."""
    parts = []
    for target in SOURCES:
        for root in (example.op_node, example.root):
            with suppress(UopError):
                source = compile(root, target=target).source
                shown = source.removeprefix(target.dialect.header).strip()
                if shown and shown.count("\n") < MOST_LINES:
                    parts.append(f"```c\n{shown}\n```\n")
                    break
    return "\n".join([f"## {SOURCE}\n", *parts]) if parts else ""


def _section(section: Section) -> str:
    page = LEADING_TO.get(section.title)
    if page is not None:
        linked = tuple((f"[{r[0]}](../{page}.md#{slug(r[0])})", *r[1:]) for r in section.table)
        section = replace(section, table=linked)
    parts = [f"## {section.title}\n", *_content(section, "uop")]
    return "\n".join(parts)


def _content(section: Section, language: str) -> Iterator[str]:
    """The table, the code and the paragraphs of a section."""
    if section.table:
        yield "\n".join(_table(section.header, section.table)) + "\n"
    if section.code:
        yield f"```{language}\n{section.code.rstrip()}\n```\n"
    if section.text:
        yield f"{_linked(escaped(section.text))}\n"


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    return [_row(header), "|" + "---|" * len(header), *map(_row, rows)]


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(_linked(escaped(c).replace("|", "\\|")) for c in cells) + " |"


def escaped(text: str) -> str:
    """Prose that Markdown shows as it is: a star, backslash or angle bracket is none of its own."""
    return re.sub(r"`[^`]*`|[\\*<]", lambda m: m[0] if m[0][0] == "`" else f"\\{m[0]}", text)


def _linked(cell: str) -> str:
    """A cell whose decisions and findings are links."""
    cell = re.sub(r"\bD-\d{3}\b", lambda m: f"[{m[0]}]({DECISIONS}#{decision_slug(m[0])})", cell)
    return re.sub(rf"{FINDINGS}/([\w/]+)\.py", rf"[\1]({ROOT}/{FINDINGS}/\1.py)", cell)


def decision_slug(number: str) -> str:
    """The anchor that GitHub gives the heading of a decision in DECISIONS.md."""
    return slug(f"{number} {decisions()[number].title}")


def _index() -> str:
    known = [DECLARATIONS[op] for op in Op if op in DECLARATIONS]
    parts = [f"{HEAD}# The ops\n", f"[The arg of every op]({ARGS}), as JSON and as text.\n"]
    for title, same in groupby(known, lambda d: d.section):
        rows = [(f"[{d.op.name}]({d.op.name}.md)", d.doc) for d in same]
        parts += [f"## {title.capitalize()}\n", *_table(("op", "meaning"), rows), ""]
    return "\n".join(parts)


def _args() -> str:
    """An example and the fields of each arg."""
    rows = []
    for op in Op:
        page = op_page(DECLARATIONS[op]) if op in DECLARATIONS else None
        arg = DECLARATIONS[op].arg if page else None
        if page is not None and page.example is not None and arg is not None:
            written = to_json(page.example.op_node)["nodes"][-1]["arg"]
            fields = "value: a literal, dtype: DType" if op is Op.CONST else field_words(arg)
            rows.append((f"[{op.name}]({op.name}.md)", f"`{json.dumps(written)}`", fields))
    table = _table(("op", "an example", "fields"), rows)
    return "\n".join([f"{HEAD}{_head('args')}", *table, ""])


def matrix_of(page: str) -> dict[str, Systems]:
    """The squares of each row of the page's table of ops."""
    rows = [[c.strip() for c in line.split("|")[1:-1]] for line in page.splitlines()]
    start = next(k for k, row in enumerate(rows) if row[:1] == ["op"])
    head = rows[start][1:]
    end = next(k for k in range(start, len(rows)) if not rows[k])
    return {row[0]: dict(zip(head, row[1:], strict=True)) for row in rows[start + 2 : end]}


def judged_section(systems: Systems) -> Section:
    """What each system does with an op, those that fail first."""
    ordered = sorted(systems.items(), key=lambda item: not item[1].startswith(FAILS))
    table = grouped((_words(square), name) for name, square in ordered)
    return Section("Judged systems", ("system", "with this op"), table)


def _words(square: str) -> str:
    """`fails 2 of 37 programs` for a failure, else the state alone."""
    mark, _, numbers = square.partition(" ")
    if mark != FAILS:
        return STATES[mark]
    failed, _, programs = numbers.partition("/")
    return f"{STATES[mark]} {failed} of {programs} programs"


LISTS = {
    "glossary.md": glossary,
    "rules.md": rules,
    "labels.md": other_labels,
    "editions.md": words_of_editions,
    "documents.md": documents,
    GRAMMAR: grammar,
}
"""The generated files that are lists of their own, and what writes each."""


if __name__ == "__main__":
    if not Path(sys.argv[1], OPS).is_dir():
        sys.exit(f"expected the folder docs, found {sys.argv[1]}")
    load_additions()
    write(Path(sys.argv[1]))
