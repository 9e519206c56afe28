"""The JSON twin: the same node comes back, everything derived stands in it, bad data says where."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from strategies import programs

from uop.spec.args import Arg, ConstArg
from uop.spec.dtype import dtypes
from uop.spec.errors import InvalidError, MalformedError
from uop.spec.ops.names import Op
from uop.spec.text.json_form import FORMAT, dumps, from_json, loads, to_json, unbuilt_to_json
from uop.spec.text.program import Unbuilt
from uop.spec.uop import UOp, const, param


@pytest.mark.parametrize("op", list(Op), ids=lambda op: op.name)
def test_every_op_reads_back_as_the_same_node(op: Op, examples: dict[Op, UOp]) -> None:
    assert loads(dumps(examples[op])) is examples[op]


@settings(max_examples=100, deadline=None)
@given(programs())
def test_any_program_reads_back_as_the_same_node(root: UOp) -> None:
    assert loads(dumps(root)) is root


def test_nodes_carry_all_that_is_derived() -> None:
    u = UOp(Op.NEG, param(1, (2, 3), dtypes.float32, "CPU"), tag="t")
    two, three, shape, given_, negated = to_json(u)["nodes"]
    assert (two["src"], two["arg"]) == ([], {"value": 2, "dtype": "index"})
    assert (three["arg"]["value"], shape["src"]) == (3, [0, 1])
    assert given_ == {
        "op": "PARAM",
        "src": [2],
        "arg": {"slot": 1, "dtype": "float32", "device": "CPU"},
        "dtype": "float32",
        "shape": [2, 3],
        "device": "CPU",
        "addrspace": None,
    }
    assert (negated["src"], negated["arg"], negated["tag"]) == ([3], None, "t")


@pytest.mark.parametrize(
    ("value", "dtype", "written"),
    [
        (1 << 53, dtypes.int64, 1 << 53),
        ((1 << 53) + 1, dtypes.int64, "9007199254740993"),
        (-(1 << 63), dtypes.int64, "-9223372036854775808"),
        ((1 << 64) - 1, dtypes.uint64, "18446744073709551615"),
        (1.5, dtypes.float32, "0x1.8p+0"),
        (True, dtypes.bool, True),
    ],
)
def test_what_json_cannot_hold_exactly_is_a_string(value: Any, dtype: Any, written: Any) -> None:
    u = const(value, dtype)
    assert to_json(u)["nodes"][0]["arg"]["value"] == written
    assert loads(dumps(u)) is u


def test_numbers_and_unknown_keys_of_other_writers_are_read() -> None:
    node = {"op": "CONST", "arg": {"value": 0.5, "dtype": "float16"}, "comment": "mine"}
    assert from_json({"format": FORMAT, "nodes": [node], "writer": "me"}) is const(
        0.5, dtypes.float16
    )


def test_a_node_that_was_not_checked_is_written_without_its_derived_part() -> None:
    given_ = param(0, (2,), dtypes.int8)
    data = unbuilt_to_json(Unbuilt(Op.NEG, (given_, given_), Arg()))
    assert data["nodes"][-1] == {"op": "NEG", "src": [2, 2], "arg": {}}
    with pytest.raises(InvalidError) as caught:
        from_json(data)
    assert (caught.value.label, caught.value.where) == ("NEG.arity", "nodes[3]")


def test_a_void_constant_can_be_written_to_be_rejected() -> None:
    data = unbuilt_to_json(Unbuilt(Op.CONST, (), ConstArg(1, dtypes.void)))
    with pytest.raises(InvalidError, match=r"CONST\.c1"):
        from_json(json.loads(json.dumps(data)))


GOOD = {"op": "CONST", "src": [], "arg": {"value": 1, "dtype": "int8"}}


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([], "nodes: expected a list of nodes"),
        ("x", "nodes: expected a list of nodes"),
        ([1], "nodes[0]: expected an object"),
        ([{"src": []}], "nodes[0]: op: expected the name of an op"),
        ([GOOD | {"op": "FOO"}], "nodes[0]: unknown op 'FOO'"),
        ([GOOD | {"src": 3}], "nodes[0]: src: expected a list of positions"),
        ([GOOD | {"src": [0]}], "nodes[0]: src: expected the position of a node before this one"),
        ([GOOD, {"op": "NEG", "src": [True]}], "nodes[1]: src: expected the position"),
        ([GOOD, {"op": "NEG", "src": [-1]}], "nodes[1]: src: expected the position"),
        ([GOOD | {"arg": 3}], "nodes[0]: arg: expected an object or null"),
        ([GOOD | {"tag": 3}], "nodes[0]: tag: expected a string or null"),
        ([GOOD | {"arg": {"value": 1}}], "nodes[0]: CONST lacks the arg field 'dtype'"),
        ([GOOD | {"arg": GOOD["arg"] | {"x": 1}}], "CONST has no arg field 'x'"),  # type: ignore[operator]
        ([GOOD | {"arg": {"value": [[1]], "dtype": "int8"}}], "expected a value, found list"),
        ([GOOD | {"arg": {"value": "nan", "dtype": "int8"}}], "expected an integer, found 'nan'"),
        ([GOOD | {"arg": {"value": None, "dtype": "int8"}}], "expected an integer, found None"),
        ([GOOD | {"dtype": "int16"}], "nodes[0]: dtype: expected int8, found int16"),
        ([GOOD | {"shape": [1]}], "nodes[0]: shape: expected [], found [1]"),
    ],
)
def test_data_that_is_no_program_is_refused(nodes: Any, message: str) -> None:
    with pytest.raises(MalformedError) as caught:
        from_json({"format": FORMAT, "nodes": nodes})
    assert message in str(caught.value)


@pytest.mark.parametrize("data", [None, [], {}, {"format": "uop/2", "nodes": [GOOD]}])
def test_another_format_is_refused(data: object) -> None:
    with pytest.raises(MalformedError, match='"format": "uop/1"'):
        from_json(data)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('{"format": "uop/1",\n "nodes": [}', 2, "Expecting value"),
        ('{"format": NaN}', 1, "NaN is no JSON number"),
        ("[" * 100_000, 1, "no JSON"),
        ("", 1, "Expecting value"),
    ],
)
def test_text_that_is_no_json_is_refused_in_its_place(text: str, line: int, message: str) -> None:
    with pytest.raises(MalformedError, match=message) as caught:
        loads(text, "x.json")
    assert (caught.value.path, caught.value.line) == ("x.json", line)
