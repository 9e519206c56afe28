"""Writes the page of the playground: one file that loads nothing from elsewhere."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template

from uop.compiler.pipeline import TARGETS
from uop.conformance.judging.storage import file_text, to_literals
from uop.conformance.playground.shown import Shown
from uop.conformance.protocol.codec import to_json
from uop.conformance.reference.examples import example_of
from uop.conformance.report.html.markup import style_of_pages
from uop.spec.case import FileCase
from uop.spec.registry import DECLARATIONS

MOST_TEXT = 64 << 10
"""The most characters of a program that is typed."""


@dataclass(frozen=True, slots=True)
class Example:
    """A program to pick, below a heading."""

    heading: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Page:
    """What a page begins with. With `served` its server answers for other programs."""

    title: str
    target: str
    text: str
    served: bool = False
    shown: Shown | None = None
    targets: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    examples: tuple[Example, ...] = ()


def served_page(backends: tuple[str, ...]) -> str:
    """The page that `uop serve` answers, which offers these backends."""
    examples = tuple(_examples())
    first = next(example for example in examples if example.name == "softmax")
    targets = tuple(TARGETS)
    page = Page(
        "The UOp playground", targets[0], first.text, True, None, targets, backends, examples
    )
    return html(page)


def page_of_file(title: str, case: FileCase, target: str, shown: Shown) -> str:
    """The page that `uop view` writes. A long text is that of the program, without its inputs."""
    whole = file_text(case)
    text = whole if len(whole) <= MOST_TEXT else case.text
    return html(Page(title, target, text, shown=shown))


def html(page: Page) -> str:
    """The page as one file. Its policy allows no other script, and no other server."""
    style, script = style_of_pages() + _file("page.css"), _file("page.js")
    policy = (
        f"default-src 'none'; script-src {_source(script)}; style-src {_source(style)}; "
        "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'"
    )
    # In a script no entity is read, but `</script>` ends it.
    data = json.dumps(to_json(page)).replace("<", r"\u003c")
    parts = {"title": escape(page.title), "policy": policy, "style": style, "script": script}
    return Template(_file("page.html")).substitute(parts, data=data)


def _examples() -> list[Example]:
    programs = [file for file in files("uop.examples").iterdir() if file.name.endswith(".uop")]
    found = [
        Example("Programs", file.name.removesuffix(".uop"), file.read_text("utf-8"))
        for file in sorted(programs, key=lambda file: file.name)
    ]
    for op in DECLARATIONS:
        if example := example_of(op):
            text = file_text(FileCase("", example.root, to_literals(example.inputs)))
            found.append(Example("Ops", op.name, text))
    return found


def _source(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _file(name: str) -> str:
    return files("uop.conformance.playground").joinpath(name).read_text("utf-8")
