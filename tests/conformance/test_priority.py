"""The groups that come first, and those that a smoke run leaves out."""

from __future__ import annotations

from dataclasses import replace

from uop.conformance.backends.interpreter import InterpreterBackend
from uop.conformance.run.options import Options
from uop.conformance.run.selection import by_priority, in_turns, selected
from uop.conformance.suite.case import LEVELS
from uop.conformance.suite.generate import groups
from uop.conformance.suite.priority import FILE, LEFT_OUT, PLACES, in_smoke, key_of, text_of
from uop.conformance.suite.vocabulary import vocabulary_of

EVERY = {key_of(group.id(0)): group for level in LEVELS for group in groups(level)}


def test_the_file_names_groups_of_the_suite_each_once() -> None:
    assert FILE.read_text("utf-8") == text_of(list(PLACES), sorted(LEFT_OUT))
    assert PLACES.keys() | LEFT_OUT <= EVERY.keys()
    assert not PLACES.keys() & LEFT_OUT


def test_groups_that_are_left_out_have_the_cases_of_other_efforts() -> None:
    for key in LEFT_OUT:
        group = EVERY[key]
        assert in_smoke(group) == group
        assert group.count("smoke") == 0 < group.count("default")


def test_every_op_and_dtype_of_a_group_that_is_left_out_has_another_one() -> None:
    smoke = {(id.op, id.dtype) for id in selected(Options("interpreter", effort="smoke"))}
    assert {tuple(key.split("/")[1:3]) for key in LEFT_OUT} <= smoke


def test_a_backend_that_lists_less_gets_all_groups() -> None:
    hello = InterpreterBackend().hello()
    less = vocabulary_of([replace(hello, dtypes=hello.dtypes - {"fp8e5m2"})])
    for level in LEVELS:
        for group in groups(level, less):
            if key_of(group.id(0)) in LEFT_OUT and group.dtype != "fp8e5m2":
                assert group.count("smoke") > 0


def test_cases_that_tell_most_come_first_and_the_others_in_turns() -> None:
    ids = selected(Options("interpreter", effort="smoke"))
    ordered = by_priority(ids, 0)
    assert sorted(map(str, ordered)) == sorted(map(str, ids))
    first = [id for id in ordered if id.index == 0 and key_of(id) in PLACES]
    assert ordered[: len(first)] == first
    assert [PLACES[key_of(id)] for id in first] == sorted(PLACES.values())
    assert ordered[len(first) :] == in_turns([id for id in ids if id not in first], 0)
