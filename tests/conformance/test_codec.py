"""Messages between processes: each type is written and read by its fields."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import numpy as np
import pytest

from uop.conformance.protocol import wire
from uop.conformance.protocol.codec import from_json, to_json
from uop.conformance.protocol.types import Outputs, Problem, ProblemKind, Program


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Leaf:
    name: str
    colour: Colour = Colour.RED


@dataclass(frozen=True)
class Tree:
    leaf: Leaf | None
    either: tuple[Leaf | Tree, ...]
    names: frozenset[str]
    by_name: Mapping[str, Leaf]
    by_number: Mapping[int, float]
    path: Path = Path("a")
    more: tuple[int, ...] = field(default=())


LEAF = Leaf("one")
TREE = Tree(None, (LEAF,), frozenset({"b", "a"}), {"x": LEAF}, {3: 0.5}, Path("b"), (1, 2))


def test_data_is_an_object_of_its_fields_in_order() -> None:
    assert json.dumps(to_json(TREE)) == json.dumps(
        {
            "leaf": None,
            "either": [["Leaf", {"name": "one", "colour": "red"}]],
            "names": ["a", "b"],
            "by_name": {"x": {"name": "one", "colour": "red"}},
            "by_number": [[3, 0.5]],
            "path": "b",
            "more": [1, 2],
        }
    )


def test_what_is_written_is_read() -> None:
    for tree in (TREE, Tree(LEAF, (TREE, LEAF), frozenset(), {}, {})):
        assert from_json(Tree, json.loads(json.dumps(to_json(tree)))) == tree


def test_a_missing_key_has_its_default_and_others_are_passed_over() -> None:
    assert from_json(Leaf, {"name": "one", "size": 3}) == LEAF
    with pytest.raises(TypeError):
        from_json(Leaf, {"colour": "red"})


def test_arrays_and_outcomes_are_sent_as_they_are() -> None:
    reading, writing = os.pipe()
    arrays = (np.array([[1.5, np.nan]], np.float32), np.array(True), np.zeros((0, 3), np.int8))
    problem = Problem(ProblemKind.TRAP, "it stops", "IDIV.u1")
    wire.write(writing, wire.Ran((Outputs((arrays, ())), problem), 7))
    wire.write(writing, wire.Run((Program("%0 = ...", ({4: arrays[0]},)),), 2.5))
    ran = wire.read(reading, wire.Ran)
    outputs, back = ran.outcomes
    assert (back, ran.resident) == (problem, 7)
    assert isinstance(outputs, Outputs)
    for one, other in zip(arrays, outputs.batches[0], strict=True):
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    run = wire.read(reading, wire.Run)
    assert run.programs[0].batches[0][4].tobytes() == arrays[0].tobytes()
    os.close(writing)
    with pytest.raises(wire.ClosedError):
        wire.read(reading, wire.Ran)
    os.close(reading)


@dataclass(frozen=True)
class Odd:
    number: complex


def test_a_field_of_an_unknown_type_has_no_codec() -> None:
    with pytest.raises(TypeError, match="no codec for a field of type <class 'complex'>"):
        to_json(Odd(1j))


def test_only_a_message_that_is_waited_for_is_read() -> None:
    reading, writing = os.pipe()
    wire.write(writing, wire.Refused("no driver"))
    with pytest.raises(wire.RefusedError, match="no driver"):
        wire.read(reading, wire.Ran)
    wire.write(writing, wire.Ran(()))
    with pytest.raises(wire.ClosedError):
        wire.read(reading, wire.Run)
