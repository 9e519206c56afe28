"""The device card: what each backend chooses is told, as a profile, and doing two things fails."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from uop.conformance.backends import load
from uop.conformance.backends.adversary import AdversaryBackend
from uop.conformance.backends.interpreter import InterpreterBackend
from uop.conformance.profile.card import Card, Observation, observe
from uop.conformance.profile.file import ProfileFileError, profile_text, read_profile
from uop.conformance.profile.points import free_points, knob_points
from uop.conformance.profile.probe import Probe
from uop.conformance.protocol.codec import from_json, to_json
from uop.conformance.protocol.types import Backend, Outcome, Problem, ProblemKind
from uop.conformance.report.model import Conclusion
from uop.conformance.report.terminal import Display
from uop.conformance.run.conform import Conformance, conform
from uop.conformance.run.options import Options, profile_named
from uop.conformance.run.replay import replay
from uop.conformance.workers.transport import Local
from uop.spec.errors import BackendError
from uop.spec.latitude import KNOBS, LIBERTIES, STRICT, Profile
from uop.spec.ops.names import Op
from uop.spec.text.profile_text import parse_profile, profile_of

pytestmark = pytest.mark.usefixtures("choosing_backends")

SHOWN = KNOBS.keys() - {"snan"}
"""A copy that keeps a signalling NaN here promises nothing of a copy in another program."""


def chosen(name: str) -> Backend:
    return load(f"choosing_backends:{name}")


def card_of(name: str) -> Card:
    return observe(Local(chosen(name)))


@pytest.fixture(scope="module")
def reference() -> Card:
    return observe(Local(InterpreterBackend()))


def test_every_knob_has_a_point_with_several_answers() -> None:
    assert {point.knob for point in knob_points()} == SHOWN
    for point in knob_points():
        elements = sum(len(witness.answers) for witness in point.witnesses)
        assert elements > 1 or point.name == "decomposed SQRT"
        words = {w for witness in point.witnesses for a in witness.answers for w in a}
        assert words <= set(point.declares)
        assert len(point.declares) == 2
    assert not any(point.knob for point in free_points())


def test_the_reference_is_exact_and_does_one_thing_everywhere(reference: Card) -> None:
    assert reference.profile == Profile(max_nan="propagate", cmp_nan="ieee")
    assert all(entry.consistent for entry in reference.entries)
    assert len(reference.entries) == len(knob_points()) + len(free_points())


@pytest.mark.parametrize(
    ("backend", "point", "observed", "profile"),
    [
        ("Numbers", "max_nan", "number", {"max_nan": "number"}),
        ("Truncating", "int_div", "trunc", {"int_div": "trunc"}),
        ("Contracting", "contract SUB", "rounded once", {"contract": "all"}),
        ("Flushing", "ftz float32", "flushed", {"ftz": "float32"}),
        ("Trapping", "int_div_traps", "traps", {"int_div_traps": "true"}),
        ("Algebraic", "algebra MUL", "folded", {"algebra": "all"}),
        ("Wide", "excess_precision float16", "unrounded", {"excess_precision": "float16"}),
    ],
)
def test_a_choice_is_told_with_its_evidence(
    backend: str, point: str, observed: str, profile: dict[str, str]
) -> None:
    card = card_of(backend)
    entry = next(e for e in card.entries if e.point == point)
    assert (entry.observed, entry.consistent) == (observed, True)
    assert len(entry.evidence) > 1
    assert profile.items() <= card.profile.declared().items()
    others = {"max_nan": "propagate", "cmp_nan": "ieee"}
    assert card.profile.declared() == others | profile
    assert card.twofold == ()


EXAMPLES = {
    "choosing_backends:Contracting": "(x * y) - z for x = 0.1, y = 10, z = 1 is 1.4901161e-8, "
    "strict 0",
    "choosing_backends:Regrouping": "(x + 1e8) - 1e8 for x = 1 is 1, strict 0",
    "choosing_backends:Wide": "(x + y) != x for float16 x = 2048, y = 1 is true, strict false",
    "choosing_backends:Truncating": "x % 4 for x = -7 is -3, strict 1",
    "choosing_backends:Trapping": "x % y for x = 1, y = 0 traps, strict goes on",
    "choosing_backends:Algebraic": "x * 0 for x = -1 is 0, strict -0",
    "choosing_backends:Flushing": "x < y for x = 0, y = 5.877472e-39 is false, strict true",
    "adversary::pad_fill=zero": "reduce(mul, pad(x)) for x = [3, 5] is 0, strict 15",
    "adversary::fp8_saturate=true": "fp8e4m3(x) for x = 1000 is 448, strict nan",
}
"""Each backend takes one liberty; those with an example on ordinary values show that."""


@pytest.mark.parametrize("backend", EXAMPLES)
def test_a_liberty_has_the_smallest_example_on_ordinary_values(backend: str) -> None:
    card = observe(Local(load(backend)))
    assert EXAMPLES[backend] in [entry.example for entry in card.liberties]
    taken = {k for k in card.profile.declared() if k in LIBERTIES}
    assert {entry.knob for entry in card.liberties} == taken


def test_a_choice_that_the_spec_leaves_is_no_liberty() -> None:
    assert KNOBS.keys() - LIBERTIES == {"max_nan", "cmp_nan", "snan"}
    assert card_of("Numbers").liberties == ()


def test_a_knob_is_observed_only_where_all_answers_agree() -> None:
    card = card_of("Powers")
    (entry,) = card.twofold
    assert (entry.point, entry.observed) == ("decomposed POW", "own and decomposed")
    assert (card.profile.decomposed, entry.example) == (frozenset(), "")
    assert "a profile with decomposed=POW allows both" in entry.message


@pytest.mark.slow
@pytest.mark.parametrize("backend", EXAMPLES)
def test_the_repro_of_a_liberty_passes_by_the_strict_language_alone(
    backend: str, tmp_path: Path
) -> None:
    liberties = observe(Local(load(backend))).liberties
    entry = next(e for e in liberties if e.example == EXAMPLES[backend])
    repro = tmp_path / "liberty.uop"
    repro.write_text(entry.repro)
    statuses = [replay([repro], name)[0].verdict.status for name in ("interpreter", backend)]
    assert statuses == ["passed", "failed"]


def test_a_liberty_is_a_cause_under_strict(tmp_path: Path) -> None:
    """It is one where the cases that were judged do not show it."""
    card, folder = card_of("Regrouping"), tmp_path / "failures"
    runs = [
        Conformance(Options("x", profile=profile, output=folder), Display(), card=card)
        for profile in ("strict", "max_nan=propagate", "contract=all")
    ]
    skipping = Conformance(Options("x", profile="strict"), Display(), card=card)
    skipping.known_failures.skipped = ("card reassociate ADD",)
    hello = InterpreterBackend().hello()
    failures = [run.failures(hello, tries=False) for run in (*runs, skipping)]
    assert [len(found) for found in failures] == [1, 1, 0, 0]
    failure = failures[0][0]
    assert failure.signature == "card reassociate ADD"
    assert failure.message == (
        "takes a liberty: reassociate=ADD: (x + 1e8) - 1e8 for x = 1 is 1, strict 0"
    )


def test_a_backend_that_does_two_things_is_shown_with_both_and_a_repro(tmp_path: Path) -> None:
    card = card_of("Alternating")
    (entry,) = card.twofold
    assert entry.point == "max_nan"
    assert "number" in entry.conflict[1]
    assert "propagate" in entry.conflict[0]
    assert "max_nan=either allows both" in entry.message
    repro = tmp_path / "max_nan.uop"
    repro.write_text(entry.repro)
    statuses = [
        replay([repro], name)[0].verdict.status
        for name in ("interpreter", "choosing_backends:Numbers")
    ]
    assert statuses == ["passed", "failed"]


@pytest.mark.slow
def test_a_liberty_that_is_taken_in_some_programs_is_one_choice(tmp_path: Path) -> None:
    card = card_of("ContractingSums")
    entry = next(e for e in card.entries if e.point == "contract ADD")
    assert (entry.observed, entry.consistent) == ("rounded once", True)
    assert (card.profile.contract, card.twofold) == ({Op.ADD}, ())
    options = Options(
        "choosing_backends:ContractingSums",
        levels=("op", "graph"),
        ops=("ADD", "SUB", "MULACC", "MIXED"),
        dtypes=("float32", "MIXED"),
        effort="smoke",
        workers=1,
        output=tmp_path,
    )
    assert conform(options).conclusion is Conclusion.CONFORMS


@pytest.mark.parametrize(
    ("told", "point", "observed"),
    [
        ("int_div_traps=true", "int_div_traps", "traps"),
        ("int_div=trunc", "int_div", "trunc"),
        ("fp8_saturate=true", "fp8_saturate", "saturates"),
        ("max_nan=number", "max_nan", "number"),
        ("max_nan=propagate", "max_nan", "propagate"),
        ("cmp_nan=ieee", "cmp_nan", "ieee"),
        ("pad_fill=zero", "pad_fill", "zero"),
    ],
)
def test_an_adversary_does_what_it_is_told(told: str, point: str, observed: str) -> None:
    card = observe(Local(AdversaryBackend(f":{told}")))
    assert [e.observed for e in card.entries if e.point == point] == [observed]


def test_what_a_backend_lacks_has_no_entry() -> None:
    card = card_of("Poor")
    assert [entry.point for entry in card.entries] == ["max_nan", "MAX of two zeros"]
    # It gives the first operand.
    assert card.entries[0].observed == "propagate and number"


def test_answers_that_mean_nothing_are_shown_and_declare_nothing() -> None:
    card = card_of("Odd")
    assert {entry.observed for entry in card.entries} == {"none of the known answers"}
    assert card.profile == Profile()
    lines = [line for entry in card.entries for line in entry.evidence]
    assert any("internal, no | MAX today" in line for line in lines)
    assert any("something else than one array" in line for line in lines)


class Hung(Local):
    """A session with a backend that gives no reply, and counts for how long one waits."""

    def __init__(self) -> None:
        super().__init__(InterpreterBackend())
        self.waits = 0

    def collect(self) -> list[Outcome]:
        self.waits += len(self.submitted)
        return [Problem(ProblemKind.HANG, "no reply within 10 s")] * len(self.submitted)


def test_a_backend_that_hangs_is_asked_once() -> None:
    session = Hung()
    with pytest.raises(BackendError, match=r"it hangs on .*: no reply within 10 s; with a profile"):
        observe(session)
    assert session.waits == 1


def test_a_card_survives_json(reference: Card) -> None:
    for card in (reference, card_of("Alternating")):
        assert from_json(Card, json.loads(json.dumps(to_json(card)))) == card


# Profiles as files.


@pytest.mark.parametrize("backend", ["Numbers", "Truncating", "Contracting", "Flushing"])
def test_a_profile_reads_back_from_its_file(backend: str, tmp_path: Path) -> None:
    card, path = card_of(backend), tmp_path / "profile.toml"
    path.write_text(profile_text(card, chosen(backend).hello(), "choosing"))
    assert read_profile(path) == card.profile


FREE = {
    p: next(t for t in p.declares.values() if t and profile_of({p.knob: t}) != STRICT)
    for p in knob_points()
}
"""What each point declares that is not strict."""


def test_every_knob_reads_back_from_its_file(tmp_path: Path) -> None:
    entries = (Observation(p.name, p.knob, "seen", text, True, ()) for p, text in FREE.items())
    card, path = Card(tuple(entries)), tmp_path / "profile.toml"
    assert set(card.profile.declared()) == SHOWN
    path.write_text(profile_text(card, InterpreterBackend().hello(), "interpreter"))
    assert read_profile(path) == card.profile


@pytest.mark.parametrize("point", FREE, ids=lambda point: point.name)
def test_an_edited_knob_is_what_is_demanded(point: Probe, tmp_path: Path) -> None:
    path, free = tmp_path / "profile.toml", profile_of({point.knob: FREE[point]})
    strict, edited = (
        next(
            line
            for line in profile_text(card, InterpreterBackend().hello(), "x").splitlines()
            if line.startswith(f"{point.knob} = ")
        )
        for card in (
            Card(()),
            Card((Observation(point.name, point.knob, "", FREE[point], True, ()),)),
        )
    )
    text = profile_text(Card(()), InterpreterBackend().hello(), "x")
    path.write_text(text.replace(strict, edited))
    assert strict != edited
    options = Options("interpreter", profile=profile_named(str(path))).checked()
    assert parse_profile(options.profile) == free


def test_a_profile_file_bears_any_name_of_a_device(reference: Card, tmp_path: Path) -> None:
    hello, path = replace(InterpreterBackend().hello(), device="a\nb\x1b[1m"), tmp_path / "p.toml"
    path.write_text(profile_text(reference, hello, "interpreter"))
    assert read_profile(path) == reference.profile


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.replace("max_nan =", "max_nun ="), "no knob 'max_nun'"),
        (
            lambda t: t.replace('"propagate"', '"sometimes"'),
            "max_nan expects either, propagate or number; ",
        ),
        (lambda t: t.replace("wmma = false", "wmma = 0"), "wmma expects true or false; found 0"),
        (lambda t: t.replace("ftz = []", 'ftz = ["float33"]'), "ftz expects some of float16, "),
        (lambda t: t.replace("ftz = []", "ftz = [1]"), "ftz expects a list of names; found [1]"),
        (
            lambda t: t.replace("decomposed = []", 'decomposed = ["SQRT", "PARAM"]'),
            "decomposed expects some of NEG, SUB, DIV, ",
        ),
        (lambda t: t.replace("decomposed = []", 'decomposed = ["PARAM"]'), "; found 'PARAM'"),
        (
            lambda t: t.replace("excess_precision = []", 'excess_precision = ["float64"]'),
            "excess_precision expects some of float16, bfloat16, float32, fp8e4m3, fp8e5m2, ",
        ),
        (lambda t: t.replace("uop-profile/1", "uop-profile/9"), "expected schema"),
        (lambda t: t[: t.index("int_div =")], "no value for int_div, "),
        (lambda t: t[: t.index('"propagate"') + 4], "no TOML, or cut off"),
        (lambda t: "\x00", "no TOML, or cut off"),
        (lambda t: "", "expected schema"),
    ],
)
def test_a_bad_profile_file_is_told(change, said: str, reference: Card, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "profile.toml"
    path.write_text(change(profile_text(reference, InterpreterBackend().hello(), "interpreter")))
    with pytest.raises(ProfileFileError, match=r"profile\.toml: ") as caught:
        read_profile(path)
    assert said in str(caught.value)


def test_a_profile_file_may_begin_with_a_mark_of_the_byte_order(
    reference: Card, tmp_path: Path
) -> None:
    """Editors on Windows write one, and it says nothing that UTF-8 does not."""
    path = tmp_path / "profile.toml"
    text = profile_text(reference, InterpreterBackend().hello(), "interpreter")
    path.write_text(text, encoding="utf-8-sig")
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    assert read_profile(path) == reference.profile


def test_a_profile_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ProfileFileError, match="cannot read"):
        read_profile(tmp_path / "profile.toml")


# Runs.
