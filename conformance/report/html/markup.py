"""HTML helpers for the report page. Text arguments are escaped unless they are `Html`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from struct import pack, unpack

HEX_FLOAT = re.compile(r"-?0x[01](?:\.[0-9a-f]+)?p[+-]\d+")
LONGEST_LINE = 400
LARGEST = float.fromhex("0x1.fffffep+127")
"""The largest float32 value."""
HEAD = (
    '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
)
Html = str


def tag(name: str, inside: Html = "", **attributes: str) -> Html:
    """An element; `class_` sets the attribute `class`."""
    rendered = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value
    )
    return f"<{name}{rendered}>{inside}</{name}>"


def document(title: str, main: Html, css: str = "") -> Html:
    """A page without scripts or external resources; `css` follows the style of all pages."""
    head = HEAD + tag("title", escape(title)) + tag("style", style_of_pages() + css)
    body = tag("body", tag("main", main))
    return f"<!doctype html>\n{tag('html', tag('head', head) + body, lang='en')}\n"


def style_of_pages() -> str:
    """The style of all pages."""
    return files("uop.conformance.report.html").joinpath("page.css").read_text(encoding="utf-8")


def table(
    caption: str, header: Sequence[str], rows: Iterable[Sequence[Html]], class_: str = ""
) -> Html:
    """A table whose first column holds the row headers."""
    head = "".join(tag("th", escape(name), scope="col") for name in header)
    body = "".join(
        tag("tr", tag("th", row[0], scope="row") + "".join(tag("td", cell) for cell in row[1:]))
        for row in rows
    )
    inside = tag("caption", escape(caption)) + tag("thead", tag("tr", head)) + tag("tbody", body)
    return tag("div", tag("table", inside, class_=class_), class_="scroll", tabindex="0")


def pairs(entries: Iterable[tuple[str, Html]]) -> Html:
    """A description list."""
    return tag("dl", "".join(tag("dt", escape(name)) + tag("dd", text) for name, text in entries))


def code(text: str) -> Html:
    return tag("code", escape(text))


def block(text: str) -> Html:
    """Preformatted lines; very long ones are truncated."""
    return tag("pre", escape(shortened(text)), tabindex="0")


def shortened(text: str) -> str:
    """Lines as a page shows them: very long ones are truncated."""
    lines = (line[:LONGEST_LINE] + "…" * (len(line) > LONGEST_LINE) for line in text.splitlines())
    return "\n".join(lines).strip("\n")


def section(id: str, title: str, *inside: Html) -> Html:
    """A section with a heading; empty if it has no content."""
    content = "".join(inside)
    head = tag("h2", escape(title), id=f"{id}-title")
    return tag("section", head + content, id=id, aria_labelledby=f"{id}-title") if content else ""


def both(value: str) -> Html:
    """A value as in a program, with its hex floats in decimal beside it."""
    decimals = in_decimals(value)
    exact = all(float(_decimal(x)) == x for x in map(float.fromhex, HEX_FLOAT.findall(value)))
    shown = f"{'=' if exact else '≈'} {decimals}"
    small = "" if decimals == value else " " + tag("small", escape(shown))
    return tag("code", escape(value)) + small


def in_decimals(text: str) -> str:
    """Replace hex floats in a text by decimals."""
    return HEX_FLOAT.sub(lambda matched: _decimal(float.fromhex(matched[0])), text)


def _decimal(x: float) -> str:
    """Enough digits to identify the value: 9 for a float32, else 17."""
    return f"{x:.9g}" if abs(x) <= LARGEST and unpack("f", pack("f", x))[0] == x else f"{x:.17g}"


def in_id(text: str) -> str:
    """Replace characters that are unsafe in element ids."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text)
