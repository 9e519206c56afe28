"""The page of a report: what stands on it, and, in Chromium, that it opens, is whole and fits."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape
from importlib.resources import files
from itertools import product
from typing import Any

import browser
import pytest
from reports import (
    CRASHED,
    ERRORS,
    FAILED,
    FAILURE,
    LARGEST,
    PASSED,
    SKIPPED,
    WRONG,
    failing,
    full,
    report,
)

from uop.conformance.judging.elements import BINS
from uop.conformance.judging.verdict import Status
from uop.conformance.profile.card import Observation
from uop.conformance.profile.points import FREE, free_points
from uop.conformance.protocol.codec import from_json
from uop.conformance.report.html.markup import in_decimals
from uop.conformance.report.html.page import page
from uop.conformance.report.html.page_cells import histogram
from uop.conformance.report.model import Failure, KnownFailure, LedgerSums, Report
from uop.conformance.report.text import COLUMNS
from uop.conformance.report.vote import polled
from uop.spec.latitude import KNOBS
from uop.spec.ops.names import Op

CSS = files("uop.conformance.report.html").joinpath("page.css").read_text()
LEDGER = from_json(
    LedgerSums,
    {
        "total": 5,
        "checked": 4,
        "kinds": {"label": {"says": "a constraint", "total": 5, "checked": 4}},
        "unchecked": [{"reason": "no case shows it", "points": ["label ADD.c3"]}],
        "not_of_runs": [{"reason": "it has no meaning", "points": ["CALL.u1", "IF.u1"]}],
        "evidence": {"label ADD.c1": {"checks": 1, "first": ["invalid/ADD/void/c1/0@2"]}},
    },
)
SEEN = ("MAX(0x1p+0) = 1", "MAX(0x1p+1) = 2", "MAX(0x1p+2) = 3")
ENTRY = Observation(
    "max_nan", "max_nan", "propagate and number", "either", False, SEEN, SEEN[:2], "a program"
)
OPEN = Observation("NaN payload", "", "kept", "", True, SEEN, repro="a program")
SECTIONS: dict[str, Any] = {"card": (ENTRY, OPEN), "ledger": LEDGER}
KNOWN = KnownFailure("op/A/int8/b/0@2", "old", "http://a.b", "2030-12-31", "a.uop", (), "known", "")
PROBE = """
  cells: all('#matrix td[title]').length, rows: all('#matrix tbody th').map(e => e.innerText),
  first: document.querySelector('#matrix').getBoundingClientRect().bottom,
"""
CARD = Failure("card/MIXED/MIXED/a/0", "card a", "max_nan", "card", (), (), "two", "a.uop")
OPS = [*Op.__members__, *(f"OTHER{k}" for k in range(100 - len(Op)))]
SIZES = {"wide": 1280, "narrow": 390, "single": 1280}


def everything() -> Report:
    """A report with a cell for 100 ops and 15 dtypes and every part that a page can have."""
    ids = [
        f"op/{op}/{dtype}/edges/{k}@2"
        for (op, dtype), k in product(product(OPS, sum(COLUMNS, ())), (0, 1))
    ]
    verdicts = [replace(FAILED if "TRUNC" in id else PASSED, id=id) for id in ids]
    causes = (FAILURE, replace(FAILURE, signature="another"), replace(FAILURE, text="no program"))
    causes = (*causes[:2], replace(causes[2], signature="third", values=(), message="a\n" * 9))
    one = report(*verdicts, SKIPPED, CRASHED, failures=causes, **SECTIONS, known=(KNOWN,))
    others = [report(PASSED, backend="b"), report(FAILED, backend="c", failures=causes)]
    return polled([one, *others])


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a browser says of pages in frames of each size."""
    made = everything()
    single = page(replace(made, others=None, vote=None))
    pages = {name: single if name == "single" else page(made) for name in SIZES}
    return browser.probed(tmp_path_factory.mktemp("pages"), pages, SIZES, PROBE)


@pytest.mark.parametrize("size", SIZES)
def test_a_large_page_opens_in_a_browser(probed: dict[str, Any], size: str) -> None:
    found = probed[size]
    assert found["width"] <= found["room"] == SIZES[size]
    assert (found["loaded"], found["twice"], found["dead"]) == ([], [], [])
    assert (found["untitled"], found["unscoped"], found["unnamed"]) == (0, 0, 0)
    assert (found["main"], found["lang"], found["title"]) == (1, "en", "some: does not conform")
    assert set(found["rows"]) == {*OPS, "graphs"}
    # One more: the graphs on int8.
    assert found["cells"] == len(OPS) * 15 + 1


def test_the_first_screen_holds_the_verdict_and_the_matrix(probed: dict[str, Any]) -> None:
    assert probed["single"]["first"] <= 800


def test_a_page_loads_nothing_and_runs_nothing() -> None:
    text = page(everything())
    assert not re.search(r"<script|<link(?! rel=\"icon\" href=\"data:,\")|<img|@import|url\(", text)
    urls = set(re.findall(r"(?:src|href)=\"([^#\"][^\"]*)\"", text))
    assert urls == {"data:,", KNOWN.link}
    told = set(re.findall(r"https?://[^\"'< ]+", text))
    assert told <= {"http://www.w3.org/2000/svg", KNOWN.link}


def test_a_page_says_first_who_does_what() -> None:
    text = page(failing())
    for said in (
        "some does not conform",
        "2 of 3 programs gave what the language forbids. 1 of them ended it.",
        "EXP2 on float32: a wrong value",
        "For 0 it gives 2; allowed is 1.",
        "uop replay uop-failures/result-EXP2-float32.uop some",
        '<td class="f" title="EXP2 float32: 2 programs, 1 failed">',
        escape(FAILURE.text.strip()),
        "2 to the power x.",
        "within 3 ulp of the exact result",
        escape(LARGEST.accepted),
        escape(WRONG.accepted),
        "no float16",
        "= 1",
    ):
        assert said in text, said
    assert text.index("For 0 it gives 2") < text.index('id="matrix"') < text.index('id="rules"')


@pytest.mark.parametrize(
    ("made", "said", "command"),
    [
        (report(PASSED), "some conforms", "uop conform some --effort full"),
        (report(), "nothing was checked", "uop backends"),
        (
            report(PASSED, lost="it &lt; is gone"),
            "it &amp;lt; is gone",
            "uop conform some --profile strict",
        ),
        (report(PASSED, interrupted=True), "so far: the run was interrupted", "--effort full"),
        (report(FAILED), "does not conform", f"uop conform some --seed 0 --case {FAILED.id}"),
        (full(FAILED), "does not conform", "uop replay"),
        (report(PASSED, missing=("no sums",)), "too little evidence: no sums", "--effort full"),
        (report(PASSED, failures=(CARD,)), "it does two things at once", "uop replay a.uop"),
    ],
)
def test_any_report_makes_a_page(made: Any, said: str, command: str) -> None:
    text = page(made)
    assert said in text
    assert command in text


def test_parts_that_others_add_are_shown_where_they_are() -> None:
    assert 'id="card"' not in page(failing())
    text = page(report(PASSED, **SECTIONS))
    assert 'id="card"' in text
    assert "4 of 5 points of the language were exercised." in text
    assert "<td>4 of 5</td><td>a constraint</td>" in text
    assert "<summary>1: no case shows it</summary><p>label ADD.c3</p>" in text
    assert "<summary>2: it has no meaning</summary><p>CALL.u1; IF.u1</p>" in text


def test_a_card_says_of_each_point_what_is_allowed_and_seen_and_by_which_programs() -> None:
    twofold = replace(CARD, signature="card max_nan")
    text = page(report(PASSED, failures=(twofold,), **SECTIONS))
    for said in (
        "<code>max_nan</code>",
        escape(KNOBS["max_nan"]),
        "either, propagate or number",
        "<strong>propagate and number</strong>",
        "<code>max_nan=either</code>",
        "✕ two things at once",
        # In conflict the two that differ are seen first, in decimals; else the first.
        "<code>MAX(1) = 1</code><br><code>MAX(2) = 2</code><details><summary>and 1 more",
        "<code>MAX(1) = 1</code><details><summary>and 2 more",
        "MAX(0x1p+0) = 1\nMAX(0x1p+1) = 2\nMAX(0x1p+2) = 3",
        FREE["NaN payload"],
        "<strong>kept</strong>",
    ):
        assert said in text, said
    assert text.count("two things at once</span>") == 1
    # Where the declared profile allows both it is no fault.
    allowed = page(report(PASSED, **SECTIONS))
    assert "two things at once" not in allowed
    assert "<strong>propagate and number</strong>" in allowed


def test_every_open_point_of_a_card_has_its_words() -> None:
    assert list(FREE) == [point.name for point in free_points()]


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ((KNOWN,), "All but 1 of 2 programs gave results that the language allows"),
        ((replace(KNOWN, state="fixed", stale="a.toml:2: remove"),), "are out of date"),
    ],
)
def test_the_verdict_of_a_page_counts_known_failures(
    known: tuple[KnownFailure, ...], said: str
) -> None:
    text = page(report(PASSED, replace(FAILED, status=Status.KNOWN), known=known))
    assert said in text
    assert "<dt>known failures</dt><dd>1</dd>" in text
    assert 'class="next"><p>Next, mend the file' in text or not known[0].stale


def test_known_failures_have_a_mark_and_a_place_of_their_own() -> None:
    assert 'id="known"' not in page(report(PASSED))
    lines = (
        replace(KNOWN, cases=("op/A/int8/b/0@2", "op/A/int8/b/1@2")),
        replace(KNOWN, state="fixed", stale="k.toml:2: remove this line", link="javascript:x()"),
        replace(KNOWN, state="expired", stale="k.toml:3: accepted until then", link="ticket 3"),
    )
    text = page(report(replace(FAILED, status=Status.KNOWN), known=lines))
    assert '<td class="k g" title="EXP2 float32' in text or '<td class="k" title="EXP2' in text
    for said in (
        '<a href="http://a.b">http://a.b</a>',
        "<summary>2</summary>",
        "<td>2030-12-31</td>",
        '<pre tabindex="0">k.toml:2: remove this line\nk.toml:3: accepted until then</pre>',
        "<small>ticket 3</small>",
        "<small>javascript:x()</small>",
    ):
        assert said in text, said
    # What fails the run comes first.
    assert text.index("passes now") < text.index("✕ expired") < text.index("fails, as expected")


def test_what_a_backend_says_stays_text() -> None:
    evil = "<script>alert(1)</script>\"'&"
    fault = replace(WRONG, got=evil, accepted=evil, place=evil, inputs=(evil,))
    cause = replace(FAILURE, signature=evil, message=evil, repro=evil, values=(fault,), text=evil)
    skipped = replace(SKIPPED, reason=evil)
    card = (Observation(evil, evil, evil, evil, False, (evil,), (evil,), evil),)
    texts = dict.fromkeys(("key", "reason", "link", "expires", "repro", "stale"), evil)
    known = (KnownFailure(**texts, cases=(evil,), state="fixed"),)
    made = report(FAILED, skipped, failures=(cause,), backend=evil, card=card, known=known)
    text = page(polled([made, report(PASSED, backend="b")]))
    assert "<script" not in text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0x1p-1 to 0x1.8p+0", "0.5 to 1.5"),
        ("0x1.99999ap-4", "0.100000001"),
        ("0x1.999999999999ap-4", "0.10000000000000001"),
        ("0x1.999999999999bp-4", "0.10000000000000002"),
        ("0x1.fffffffffffffp+1023", "1.7976931348623157e+308"),
        ("nan:0x7fc00001 or -0x0p+0", "nan:0x7fc00001 or -0"),
    ],
)
def test_neighbours_of_a_dtype_do_not_look_alike(text: str, said: str) -> None:
    assert in_decimals(text) == said


def test_the_marks_of_a_histogram_are_told_in_words() -> None:
    text = histogram(ERRORS.histogram)
    assert 'aria-label="90 as the reference, 10 part 8 of the allowance"' in text
    assert text.count("<rect") == BINS


def shades(scheme: str) -> dict[str, tuple[float, ...]]:
    """The colors of a scheme by name, each as red, green and blue from 0 to 1."""
    light, dark = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
    found = re.findall(r"--([a-z-]+): #([0-9a-f]{3,6});", light if scheme == "light" else dark)
    doubled = {
        name: text if len(text) == 6 else "".join(2 * c for c in text) for name, text in found
    }
    return {
        name: tuple(int(text[k : k + 2], 16) / 255 for k in (0, 2, 4))
        for name, text in doubled.items()
    }


def luminance(color: tuple[float, ...]) -> float:
    """By WCAG 2.2."""
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("ink", "ground"),
    [
        *product(("ink", "quiet", "good", "bad", "open", "link"), ("ground", "panel")),
        ("ink", "code"),
        ("ink", "bad-soft"),
        ("ground", "bad"),
    ],
)
def test_text_can_be_told_from_its_ground(scheme: str, ink: str, ground: str) -> None:
    found = shades(scheme)
    dark, light = sorted((luminance(found[ink]), luminance(found[ground])))
    assert (light + 0.05) / (dark + 0.05) >= 4.5
