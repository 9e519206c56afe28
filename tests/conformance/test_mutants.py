"""Mutants: each fits its module, and the machinery tells kills from crashes and lies from truth."""

from __future__ import annotations

import ast
import json
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import jsonschema
import pytest

from uop.conformance.judging.compare import Symptom
from uop.conformance.judging.verdict import CaseFailure, Status, Verdict
from uop.conformance.mutants import hunt as hunting
from uop.conformance.mutants.catalogue import (
    JUDGE,
    CatalogueError,
    Mutant,
    find_mutant,
    mutants,
    mutated,
    with_fault,
)
from uop.conformance.mutants.hunt import Fate, FaultyJudge, Hunted, Summary, hunt, shows
from uop.conformance.mutants.order import PUSHED, in_order, pushed, rejected
from uop.conformance.run.pool import SAY_HELLO, Member
from uop.conformance.suite.case import LEVELS, CaseId
from uop.conformance.suite.generate import groups
from uop.conformance.workers.forked import MEMBER
from uop.spec.errors import PassError
from uop.spec.latitude import KNOBS, STRICT
from uop.spec.ops.names import Op
from uop.spec.registry import labels
from uop.spec.text.profile_text import parse_profile

pytestmark = pytest.mark.slow

MUTANTS = list(mutants().values())
SMALL = "uop.conformance.mutants.small:SmallBackend"
KINDS = list(dict.fromkeys(mutant.kind for mutant in MUTANTS))
SCHEMA = json.loads(
    files("uop.conformance.mutants").joinpath("uop-mutants-1.schema.json").read_text()
)
ONE_OF_EACH = {
    "field: peepholes": "bytes-are-divided-as-floats",
    "field: numbers": "the-power-of-one-half-is-a-root",
    "field: schedules": "half-a-multiple-is-a-multiple",
    "field: memory": "parts-of-later-axes-are-whole",
    "field: launches": "long-counters-in-one-word",
    "absent elements": "loads-outside-give-the-element",
    "casts and bit copies": "truth-of-nan",
    "rules of decomposed ops": "not-is-the-identity",
    "devices": "results-of-several-in-reverse",
    "rules of floats": "trunc-rounds-down",
    "rules of integers": "quotients-of-unlike-signs",
    "interval rules": "sums-without-wrap",
    "kernels": "inner-conditions-forget-the-outer",
    "memory of tensor graphs": "gates-of-stores-ignored",
    "rules of movement": "pads-of-ones",
    "rules of folds": "sums-start-at-one",
    "rules of shape, dtype and axis": "broadcast-from-the-left",
    "constraints": "permutations-with-an-axis-twice",
    "calls": "results-of-the-first",
    "reading of text": "negative-zero-is-read-as-zero",
    "rewrites of the compiler": "casts-there-and-back",
    "stages of the compiler": "empty-folds-are-zero",
    "renderer of OpenCL": "quotients-toward-zero",
    "renderer of CUDA": "characters-have-no-sign",
    "runtimes": "groups-as-the-driver-likes",
    "accepted sets too narrow": "one-nan-decides",
    "accepted sets too wide": "reciprocals-of-three-units",
    "the comparison": "bits-or-nothing",
    "liberties of a profile": "shared-values-are-regrouped",
    "small backend": "casts-round-to-nearest",
}
"""Of each class one that dies soon."""


def text_of(module: str) -> str:
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_the_place_of_a_mutant_stands_once_in_its_module_and_the_fault_is_python(kind: str) -> None:
    for mutant in MUTANTS:
        if mutant.kind == kind:
            before = text_of(mutant.module)
            after = mutated(mutant, before)
            assert after != before
            ast.parse(after)


def test_a_hint_does_not_give_the_place_away() -> None:
    for mutant in MUTANTS:
        assert mutant.hint.endswith(".")
        assert mutant.module not in mutant.hint
        assert mutant.before not in mutant.hint
        assert mutant.breaks


def test_what_a_mutant_breaks_is_few_ops_or_labels() -> None:
    """With many ops named, a check of something else would pass for one of what was broken."""
    for mutant in MUTANTS:
        ops = [name for name in mutant.breaks if name in Op.__members__]
        assert len(ops) <= 3, mutant.name
        assert {*mutant.breaks} <= {*ops, *labels()}, mutant.name


def test_every_knob_of_a_profile_has_mutants() -> None:
    profiles = " ".join(m.profile for m in MUTANTS)
    assert [knob for knob in KNOBS if f"{knob}=" not in profiles] == []


def test_there_are_as_many_as_promised() -> None:
    assert len(MUTANTS) >= 200
    assert len(KINDS) >= 14
    backends = (JUDGE, "interpreter", "opencl", "cuda-host", SMALL)
    assert all(m.backend in backends for m in MUTANTS)


def test_what_accepts_too_much_is_held_against_something() -> None:
    for mutant in MUTANTS:
        assert not mutant.against or mutant.backend == JUDGE
        assert parse_profile(mutant.profile) == STRICT or mutant.backend == JUDGE
        for backend in mutant.against:
            kind, _, name = backend.partition(":")
            op, _, taken = name.partition(":")
            if kind != PUSHED:
                assert find_mutant(name).backend != JUDGE
            elif taken:
                assert mutant.level
                assert parse_profile(taken) != parse_profile(mutant.profile)
            else:
                assert op in Op.__members__


def test_of_each_class_one_is_hunted() -> None:
    assert set(ONE_OF_EACH) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_mutant_dies_of_a_case_about_what_it_breaks(
    kind: str, request: pytest.FixtureRequest
) -> None:
    mutant = find_mutant(ONE_OF_EACH[kind])
    if mutant.backend == "opencl":
        request.getfixturevalue("opencl")
    hunted = hunt(mutant)
    assert (hunted.fate, hunted.by_name) == (Fate.KILLED, True), hunted


def test_what_judges_as_it_should_accuses_each_element_that_is_pushed() -> None:
    single = [m for m in MUTANTS if not m.level]
    against = [(b.partition(":"), m.profile) for m in single for b in m.against]
    for op, profile in dict.fromkeys((op, p) for (kind, _, op), p in against if kind == PUSHED):
        id, wrong = next(iter(pushed(Op[op], hunting.SEED, parse_profile(profile))))
        member = Member.start(MEMBER, f"{PUSHED}:{op}:{profile}", profile, str(hunting.SEED))
        try:
            member.answer(SAY_HELLO)
            (verdict,) = FaultyJudge(member).judge([CaseId.parse(id)])
        finally:
            member.process.end()
        assert rejected(verdict) == wrong, id


def test_a_hunt_has_every_case_once_and_what_is_about_the_fault_first() -> None:
    every = sorted(str(g.id(k)) for level in LEVELS for g in groups(level)
                   for k in range(g.count("default")))  # fmt: skip
    for name in ("accumulators-start-once", "padded-loops-read-on", "one-index-too-many"):
        order = [str(id) for id in in_order(find_mutant(name))]
        assert sorted(order) == every
    order = [str(id) for id in in_order(find_mutant("sums-start-at-one"))]
    assert order[0] == "op/REDUCE/float32/hand-float32/0@2"
    # Behind a few of those about it what is by hand and holds it, before more of them.
    held, more = "op/PAD/int32/hand-int32/0@2", "op/REDUCE/bool/ADD-axes/1@2"
    assert order.index("op/REDUCE/int32/ADD-axes/0@2") < order.index(held) < order.index(more)


def test_a_crash_is_no_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(mutant: Mutant) -> None:
        raise PassError("it ended")

    monkeypatch.setattr(hunting, "_kill", crash)
    hunted = hunt(MUTANTS[0])
    assert hunted.fate is Fate.SURVIVED
    assert hunted.note == "not judged: it ended"


@pytest.mark.parametrize(
    ("status", "symptom", "message", "is_kill"),
    [
        (Status.FAILED, Symptom.VALUE, "output 0[0] is 1, accepted 0", True),
        (Status.FAILED, Symptom.REFUSED, "trap: INDEX.u1", True),
        (Status.FAILED, Symptom.REFUSED, "compile: g++ refuses the source:\nno such name", False),
        (Status.CRASHED, Symptom.CRASH, "the process was ended by SIGSEGV", False),
    ],
)
def test_a_kill_is_about_what_was_computed(
    status: Status, symptom: Symptom, message: str, is_kill: bool
) -> None:
    verdict = Verdict("op/ADD/int8/edges/0@2", status, failure=CaseFailure(symptom, message))
    assert shows(verdict) is is_kill
    assert not shows(Verdict("op/ADD/int8/edges/0@2", Status.PASSED))


def test_what_fails_without_the_fault_is_no_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def fails_anyway(backend: str, id: str, profile: str) -> Verdict:
        asked.append(id)
        status = Status.FAILED if len(asked) == 1 else Status.PASSED
        return Verdict(
            id, status, failure=CaseFailure(Symptom.VALUE, "output 0[0] is 1, accepted 0")
        )

    monkeypatch.setattr(hunting, "without_fault", fails_anyway)
    hunted = hunt(find_mutant("pads-of-ones"))
    assert hunted.fate is Fate.KILLED
    assert asked[0] != asked[1] == hunted.case


def test_a_place_that_has_moved_is_an_error() -> None:
    mutant = find_mutant("quotients-of-unlike-signs")
    place = f"def {mutant.inside}(a, b):\n"
    with pytest.raises(CatalogueError, match="found idiv 0 times"):
        mutated(mutant, "def another(): ...")
    with pytest.raises(CatalogueError, match="found 0 times"):
        mutated(mutant, f"{place}    return a\n")
    with pytest.raises(CatalogueError, match="found 2 times"):
        mutated(mutant, f"{place}    return {mutant.before} + {mutant.before}\n")


def test_a_place_is_found_in_any_layout() -> None:
    mutant = find_mutant("quotients-of-unlike-signs")
    text = "# é\ndef idiv(a, b):\n    return (np.floor_divide(  # anew\n        a, b,\n    ))\n"
    assert ast.unparse(ast.parse(mutated(mutant, text))).endswith(f"return {mutant.after}")


STATEMENTS = """
class C:
    def f(self):
        a = 1  # why
        if a:
            return a
        return 0
"""


def test_statements_are_laid_out_where_they_stand() -> None:
    found = with_fault(
        STATEMENTS, "C.f", "a = 1\nif a:\n    return a", "a = 2\nwhile a:\n    a -= 1"
    )
    expected = STATEMENTS.replace("a = 1  # why", "a = 2").replace("if a:", "while a:")
    assert ast.dump(ast.parse(found)) == ast.dump(ast.parse(expected.replace("return a", "a -= 1")))


def test_code_of_another_language_is_compared_as_text() -> None:
    text = 'TABLE = {"ADD": "{0} + {1}"}\nOTHER = {"ADD": "{0} + {1}"}\n'
    assert with_fault(text, "OTHER", "{0} + {1}", "{0} - {1}") == text[:27] + text[27:].replace(
        "+", "-"
    )


def test_the_sums_fit_their_schema() -> None:
    found = (
        Hunted("a", "one", Fate.KILLED, "op/ADD/int8/edges/0@2", True, 1.5, "saw"),
        Hunted("b", "one", Fate.SURVIVED, seconds=3.0),
        Hunted("c", "two", Fate.EQUIVALENT, note="a proof"),
    )
    for summary in (Summary(found), Summary((), interrupted=True)):
        jsonschema.validate(summary.to_json(), SCHEMA)
    sums = Summary(found).to_json()
    assert sums["summary"]["total"] == 3
    assert [sums["summary"][fate] for fate in ("killed", "survived", "equivalent")] == [1, 1, 1]
    assert sums["classes"]["one"]["total"] == 2
