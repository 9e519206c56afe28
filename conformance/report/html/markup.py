"""Pieces of HTML that the page of a report is made of; they take text where not told `Html`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from struct import pack, unpack

HEX_FLOAT = re.compile(r"-?0x[01](?:\.[0-9a-f]+)?p[+-]\d+")
LONGEST_LINE = 400
LARGEST = float.fromhex("0x1.fffffep+127")
"""Of the float32 values."""
Html = str


def tag(name: str, inside: Html = "", **attributes: str) -> Html:
    """An element around HTML; `class_` stands for the attribute class."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value
    )
    return f"<{name}{given}>{inside}</{name}>"


def table(
    caption: str, header: Sequence[str], rows: Iterable[Sequence[Html]], class_: str = ""
) -> Html:
    """A table whose first column names the rows."""
    head = "".join(tag("th", escape(name), scope="col") for name in header)
    body = "".join(
        tag("tr", tag("th", row[0], scope="row") + "".join(tag("td", cell) for cell in row[1:]))
        for row in rows
    )
    inside = tag("caption", escape(caption)) + tag("thead", tag("tr", head)) + tag("tbody", body)
    return tag("div", tag("table", inside, class_=class_), class_="scroll", tabindex="0")


def pairs(found: Iterable[tuple[str, Html]]) -> Html:
    """Names and what belongs to them."""
    return tag("dl", "".join(tag("dt", escape(name)) + tag("dd", text) for name, text in found))


def code(text: str) -> Html:
    return tag("code", escape(text))


def block(text: str) -> Html:
    """Lines as they are, but for the rest of very long ones."""
    lines = (line[:LONGEST_LINE] + "…" * (len(line) > LONGEST_LINE) for line in text.splitlines())
    return tag("pre", escape("\n".join(lines).strip("\n")), tabindex="0")


def section(id: str, title: str, *inside: Html) -> Html:
    """A part of the page; nothing where there is nothing in it."""
    found = "".join(inside)
    head = tag("h2", escape(title), id=f"{id}-title")
    return tag("section", head + found, id=id, aria_labelledby=f"{id}-title") if found else ""


def both(value: str) -> Html:
    """A value as programs spell it, each float in decimals beside it."""
    decimals = in_decimals(value)
    exact = all(float(_decimal(x)) == x for x in map(float.fromhex, HEX_FLOAT.findall(value)))
    shown = f"{'=' if exact else '≈'} {decimals}"
    small = "" if decimals == value else " " + tag("small", escape(shown))
    return tag("code", escape(value)) + small


def in_decimals(text: str) -> str:
    """The text, its hex floats in decimals."""
    return HEX_FLOAT.sub(lambda found: _decimal(float.fromhex(found[0])), text)


def _decimal(x: float) -> str:
    """So many digits that no two values of the least dtype that holds it look alike."""
    return f"{x:.9g}" if abs(x) <= LARGEST and unpack("f", pack("f", x))[0] == x else f"{x:.17g}"


def in_id(text: str) -> str:
    """The text with what may stand in the id of an element alone."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text)
