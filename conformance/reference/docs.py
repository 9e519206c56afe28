"""Writes the generated pages of the folder docs: `python -m uop.conformance.reference.docs docs`.

A page in docs/ops has what `uop explain` prints about an op, and a drawing of its example;
docs/glossary.md has every word of the glossary, docs/rules.md the rules of the compiler's table,
docs/editors the grammar of program files.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from uop.conformance.reference.find import rule_names
from uop.conformance.reference.glossary import chapters, legend
from uop.conformance.reference.grammar import GRAMMAR, grammar
from uop.conformance.reference.page import FINDINGS, Page, op_page, rule_page
from uop.conformance.reference.section import Section
from uop.conformance.reference.words import field_words
from uop.spec.distribution import load_additions
from uop.spec.documents.decisions import decisions
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, OpDef
from uop.spec.text.draw import svg
from uop.spec.text.json_form import to_json

HEAD = "<!-- Written by `python -m uop.conformance.reference.docs docs`; not by hand. -->\n"
ROOT = "../.."
DECISIONS = f"{ROOT}/spec/DECISIONS.md"
OPS = "ops"
GRAPHS = "graphs"
INDEX = "README.md"
ARGS = "args.md"
GLOSSARY = "glossary.md"
RULES = "rules.md"
RULES_HEAD = """# Rules of the compiler

The compiler rewrites each node by the first of these rules that applies, sources before users,
until none applies. `x`, `y` and `z` are nodes, `p` and `q` bools, `i` a place in memory, and `c`,
`d` and `e` constants, by their values; what comes twice is one node, or one value. The rules about
an index apply to nodes and constants of that dtype alone. A rule without an `after` is a function
in `compiler/rewriting/simplify.py`; the left sides are examples of what it rewrites.

`uop explain NAME` prints one of them. The tests prove each left side: they run it and its
replacement in the interpreter, or index arithmetic on counters in Python's integers. The suite
draws programs from it, as
`kernel/MIXED/int32/rule-divide-twice/0`.
"""
ARGS_HEAD = """# The arg of every op

An example of each as JSON writes it, then its fields. The text writes the same fields:
`{op=ADD, axes=(1)}`. An op that is not listed has no arg: `"arg": null`.

| type | JSON | text |
|---|---|---|
| int | a number; outside -2^53 to 2^53 a string of digits | digits |
| DType, Op, a choice of words | a string: `"float32"`, `"ADD"`, `"ZERO"` | the bare word |
| a list | a list | `(1,0)` |
| str | a string | a string in quotes |
| bytes | a string: `"hex:00ff"` | `hex:00ff` |
| device | a string; for several devices a list of strings | in quotes |
| any with `?` | left out where it is not set | left out |

The `value` of a CONST is a number, `true` or `false`; of a float dtype it is a string: `"0x1.8p+1"`
(hex, exact), `"inf"`, `"-inf"`, or a NaN by its bits: `"nan:0x7fc00001"`.
"""


def files() -> dict[str, str]:
    """Every generated file by its path in the folder docs."""
    pages = {GLOSSARY: glossary(), RULES: rules()}
    pages[GRAMMAR] = grammar()
    pages |= {f"{OPS}/{INDEX}": _index(), f"{OPS}/{ARGS}": _args()}
    for op, declaration in DECLARATIONS.items():
        page = op_page(declaration)
        pages[f"{OPS}/{op.name}.md"] = markdown(page, declaration)
        if page.example is not None:
            pages[f"{OPS}/{GRAPHS}/{op.name}.svg"] = svg(page.example.root)
    return pages


def write(folder: Path) -> None:
    """Bring a folder up to date; remove the pages of ops that no longer exist."""
    wanted = files()
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
        for path in [*map(folder.joinpath, (GLOSSARY, RULES, GRAMMAR)), *(folder / OPS).rglob("*")]
        if path.suffix in (".md", ".svg", ".json") and path.is_file()
    }
    return sorted(p for p in wanted.keys() | there.keys() if wanted.get(p) != there.get(p))


def glossary() -> str:
    """Every word by chapter, then the legend of the figures under a verdict."""
    parts = [f"{HEAD}# Glossary\n", "`uop explain WORD` prints the same.\n"]
    for title, words in chapters().items():
        parts.append(f"## {title}\n")
        parts += [f"**{t.word}**: {' '.join(filter(None, (t.says, t.more)))}\n" for t in words]
    parts += ["## The figures, in their order\n", *_table(("printed", "counts"), legend().lines)]
    return "\n".join(parts) + "\n"


def rules() -> str:
    """The rules of the compiler's table in their order."""
    parts = [f"{HEAD}{RULES_HEAD}"]
    for page in map(rule_page, rule_names()):
        (section,) = page.sections
        code = (tuple(f"`{cell}`" if cell else "" for cell in row) for row in section.table)
        parts += [f"## {page.title}\n", *([f"{page.lead}\n"] if page.lead else [])]
        parts += [*_table(section.header, code), ""]
    return "\n".join(parts)


def markdown(page: Page, declaration: OpDef) -> str:
    """The page of an op."""
    parts = [
        HEAD + f"# {declaration.op.name}\n",
        f"`{page.title}` · {declaration.section}\n",
        f"{page.lead}\n",
    ]
    for section in page.sections:
        parts.append(_section(section))
        if section.title == "Example":
            parts.append(f"![The example as a graph]({GRAPHS}/{declaration.op.name}.svg)\n")
    return "\n".join(parts)


def _section(section: Section) -> str:
    lines = [f"## {section.title}", ""]
    if section.table:
        lines += _table(section.header, section.table)
    if section.code:
        lines += ["```text", section.code.rstrip("\n"), "```"]
    if section.text:
        lines.append(section.text)
    return "\n".join(lines) + "\n"


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    return [_row(header), "|" + "---|" * len(header), *map(_row, rows)]


def _row(cells: tuple[str, ...]) -> str:
    # Markdown must not read a star, a bar or an angle bracket in a cell.
    escaped = (c.replace("\\", "\\\\").replace("|", "\\|").replace("*", "\\*") for c in cells)
    return "| " + " | ".join(_linked(c.replace("<", "&lt;")) for c in escaped) + " |"


def _linked(cell: str) -> str:
    """A cell whose decisions and findings are links."""
    cell = re.sub(r"\bD-\d{3}\b", lambda m: f"[{m[0]}]({DECISIONS}#{anchor(m[0])})", cell)
    return re.sub(rf"{FINDINGS}/(\w+)\.py", rf"[\1]({ROOT}/{FINDINGS}/\1.py)", cell)


def anchor(number: str) -> str:
    """The anchor that GitHub gives the heading of a decision in DECISIONS.md."""
    heading = f"{number} {decisions()[number].title}".lower()
    return re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")


def _index() -> str:
    known = [DECLARATIONS[op] for op in Op if op in DECLARATIONS]
    rows = [(f"[{d.op.name}]({d.op.name}.md)", d.section, d.doc) for d in known]
    table = "\n".join(_table(("op", "section", "meaning"), rows))
    return f"{HEAD}# The ops\n\n[The arg of every op]({ARGS}), as JSON and as text.\n\n{table}\n"


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
    return f"{HEAD}{ARGS_HEAD}\n" + "\n".join(_table(("op", "an example", "fields"), rows)) + "\n"


if __name__ == "__main__":
    if not Path(sys.argv[1], OPS).is_dir():
        sys.exit(f"expected the folder docs, found {sys.argv[1]}")
    load_additions()
    write(Path(sys.argv[1]))
