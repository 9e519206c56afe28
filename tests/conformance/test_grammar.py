"""The grammar for editors: each token of the examples has the colour of its kind."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from uop.conformance.reference.docs import grammar
from uop.spec.dtype import DTYPES
from uop.spec.editions import EDITIONS
from uop.spec.ops.names import Op
from uop.spec.text.literal import Line, Token
from uop.spec.text.uop_file import DIRECTIVES

ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "docs" / "editors" / "vscode"
RULES = [(rule["name"], re.compile(rule["match"])) for rule in json.loads(grammar())["patterns"]]
FILES = sorted([*(ROOT / "examples").glob("*.uop"), *ROOT.glob("conformance/suite/cases/*/*.uop")])
OF_KIND = {
    "node": "variable.other",
    "string": "string.quoted.double",
    "int": "constant.numeric",
    "end": "comment.line.semicolon",
}


def coloured(line: str) -> dict[int, str]:
    """The name of each character, as an editor finds it: leftmost, then by the order of rules."""
    names: dict[int, str] = {}
    at = 0
    while at < len(line):
        found = [
            (m.start(), k, m) for k, (_, rule) in enumerate(RULES) if (m := rule.search(line, at))
        ]
        if not found:
            break
        _, rule, match = min(found, key=lambda one: one[:2])
        names |= dict.fromkeys(range(match.start(), match.end()), RULES[rule][0])
        at = max(match.end(), at + 1)
    return names


def wanted(token: Token, after: Token, is_first: bool) -> str:
    """The name of a token by what the parser of lines takes it for."""
    if token.kind != "word":
        return OF_KIND[token.kind]
    if is_first:
        return "keyword.control"
    if after.text == "=":
        return "variable.parameter"
    if token.text in DTYPES:
        return "storage.type"
    if token.text in Op.__members__:
        return "support.function"
    if token.text in ("true", "false", "any"):
        return "constant.language"
    if token.text.startswith(("fill:", "range:", "base64:", "zlib:", "hex:")):
        return "string.unquoted"
    return (
        "constant.numeric" if re.match(r"[-+]?[0-9]|[-+]?inf|nan", token.text) else "constant.other"
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_tokens_have_the_colour_of_their_kind(path: Path) -> None:
    for line in path.read_text("utf-8").splitlines():
        if re.match(r"\s*(case|profile|edition|invalid|undefined|;)", line):
            continue
        names = coloured(line)
        for k, (token, after) in enumerate(pairwise([*Line(line).rest(), Token("end", "", 0)])):
            if token.kind != "mark" and token.text:
                name = wanted(token, after, is_first=k == 0)
                for at in range(token.column - 1, token.column - 1 + len(token.text)):
                    assert names.get(at) == f"{name}.uop", (line, token)


@pytest.mark.parametrize("line", ["case a/b@1", "profile max_nan=number", "invalid ADD.c1"])
def test_directives_are_keywords(line: str) -> None:
    assert coloured(line)[0] == "keyword.control.uop"


def test_every_name_has_a_colour() -> None:
    words = {word for edition in EDITIONS.values() for word in edition.words}
    for name, kind in (
        *((name, "support.function") for name in {*Op.__members__, *words}),
        *((name, "storage.type") for name in DTYPES),
        *((name, "keyword.control") for name in ("edition", *DIRECTIVES)),
        *((name, "constant.numeric") for name in ("NaN", "-Inf", "nan:0x7fc0", "-0x1.8p+3", "1e5")),
    ):
        assert set(coloured(f"{name} ").values()) == {f"{kind}.uop"}, name


def matchers() -> dict[str, Any]:
    found = json.loads((EXTENSION / "package.json").read_text("utf-8"))["contributes"]
    for part in ("languages", "grammars"):
        for value in found[part][0].values():
            assert not str(value).startswith("./") or (EXTENSION / value).is_file()
    return {matcher["name"]: matcher["pattern"] for matcher in found["problemMatchers"]}


def test_errors_become_markers(uop: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.uop"
    path.write_text("%0 = FOO")
    match = re.match(matchers()["uop"]["regexp"], uop("fmt", str(path)).err)
    assert match is not None
    assert match.groups() == (str(path), "1", "6", "unknown op 'FOO'")
    path.write_text("%0 = PARAM [2] {slot=0, dtype=int8}\n%1 = SIN %0")
    lines = uop("fmt", str(path)).err.splitlines()
    found = [
        re.match(p["regexp"], line) for p, line in zip(matchers()["uop-label"], lines, strict=True)
    ]
    assert all(found)
    assert found[-1] is not None
    assert found[-1].groups() == (str(path), "2", "1")
