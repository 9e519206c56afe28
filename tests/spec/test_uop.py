"""The node: interned, immutable, checked at birth, equal by identity, of any depth."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import weakref
from dataclasses import fields
from pathlib import Path

import pytest

import uop.spec.args
from uop.spec.args import (
    Arg,
    BinaryArg,
    ConstArg,
    FlipArg,
    PadArg,
    PadFill,
    PermuteArg,
    RangeArg,
    SourceArg,
)
from uop.spec.dtype import dtypes
from uop.spec.errors import InvalidError
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.text.json_form import dumps, loads
from uop.spec.text.program import parse, print_program
from uop.spec.uop import UOp, const, dims, index_const, param

DEEP = 100_000


def test_equal_nodes_are_one_object() -> None:
    x = param(0, (2,), dtypes.float32)
    assert UOp(Op.NEG, x) is UOp(Op.NEG, param(0, (2,), dtypes.float32))
    assert UOp(Op.NEG, x) is not UOp(Op.NEG, x, tag="t")
    assert UOp(Op.PAD, x, dims((0,)), dims((3,))) is UOp(
        Op.PAD, x, dims((0,)), dims((3,)), arg=PadArg(PadFill.INVALID)
    )


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (const(0.0, dtypes.float32), const(-0.0, dtypes.float32)),
        (const(True, dtypes.bool), const(1, dtypes.int8)),
        (const(1, dtypes.int8), const(1, dtypes.uint8)),
        (const(1, dtypes.float32), const(1, dtypes.float64)),
    ],
)
def test_constants_are_keyed_by_bits_and_dtype(a: UOp, b: UOp) -> None:
    assert a is not b
    assert a != b


def test_two_loops_of_one_bound_are_two_nodes() -> None:
    first, second = (UOp(Op.RANGE, index_const(4), arg=RangeArg(i)) for i in (0, 1))
    assert first is not second
    assert first is UOp(Op.RANGE, index_const(4), arg=RangeArg(0))


def test_a_nan_constant_equals_itself_and_no_other_payload() -> None:
    nan = float("nan")
    assert const(nan, dtypes.float32) is const(nan, dtypes.float32)
    payload = UOp(Op.CONST, arg=ConstArg(0x7FC00001, dtypes.float32))
    assert payload is not const(nan, dtypes.float32)


@pytest.mark.parametrize(
    ("value", "dtype"), [(256, dtypes.uint8), (-1, dtypes.uint8), (0.5, dtypes.int8)]
)
def test_a_constant_outside_its_dtype_is_refused(value: float, dtype: object) -> None:
    with pytest.raises(ValueError, match=r"u?int8"):
        const(value, dtype)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("op", "arg"),
    [
        (Op.CONST, ConstArg(1, dtypes.int8)),
        (Op.BINARY, BinaryArg(b"x")),
        (Op.SOURCE, SourceArg("k")),
    ],
    ids=lambda x: getattr(x, "name", None),
)
def test_a_leaf_takes_no_operands(op: Op, arg: Arg) -> None:
    assert UOp(op, arg=arg).src == ()
    with pytest.raises(InvalidError, match=rf"{op.name}\.arity"):
        UOp(op, const(1, dtypes.int8), arg=arg)


def test_an_unused_node_is_forgotten() -> None:
    u = UOp(Op.NEG, param(77, (2,), dtypes.float32))
    gone = weakref.ref(u)
    del u
    gc.collect()
    assert gone() is None


def test_a_node_cannot_be_changed() -> None:
    u = const(1, dtypes.int8)
    for name in ("op", "src", "arg", "tag", "dtype", "shape", "anything"):
        with pytest.raises(AttributeError, match="a UOp is immutable"):
            setattr(u, name, None)
    with pytest.raises(AttributeError, match="a UOp is immutable"):
        del u.op


def test_a_node_is_not_pickled_or_copied() -> None:
    u = const(1, dtypes.int8)
    with pytest.raises(TypeError, match="exchange its text or JSON"):
        pickle.dumps(u)
    with pytest.raises(TypeError, match="exchange its text or JSON"):
        copy.deepcopy(u)


def test_an_error_names_the_label_the_node_and_the_users_line() -> None:
    x = param(0, (2, 3), dtypes.float32)
    with pytest.raises(InvalidError) as caught:
        UOp(Op.PERMUTE, x, arg=PermuteArg((1, 1)))
    error = caught.value
    assert error.label == "PERMUTE.c1"
    assert "PARAM:float32[2, 3]" in error.node
    assert error.found == "(1, 1) for rank 2"
    path, _, line = error.where.rpartition(":")
    assert path == __file__
    text = Path(__file__).read_text().splitlines()[int(line) - 1]
    assert text.strip() == "UOp(Op.PERMUTE, x, arg=PermuteArg((1, 1)))"
    assert str(error).startswith("PERMUTE.c1: order is a permutation of the axes of T\n")


def test_the_line_is_the_users_also_through_a_helper_of_the_package() -> None:
    with pytest.raises(InvalidError) as caught:
        dims((-1,)), param(0, (-1,), dtypes.int8)
    assert caught.value.where.startswith(f"{__file__}:")


def chain(depth: int) -> UOp:
    u = param(0, (), dtypes.int32)
    for _ in range(depth):
        u = UOp(Op.NEG, u)
    return u


@pytest.mark.slow
def test_a_deep_chain_hashes_prints_parses_and_dies_without_recursion() -> None:
    u = chain(DEEP)
    assert {u: "found"}[u] == "found"
    assert len(u.toposort()) == DEEP + 2
    assert u.min_max is not None
    assert u.axis is None
    assert repr(u) == "<NEG : int32[]>"
    text = print_program(u)
    assert parse(text) is u
    assert loads(dumps(u)) is u
    assert u.substitute({param(0, (), dtypes.int32): const(3, dtypes.int32)}).dtype is dtypes.int32
    dead = weakref.ref(u)
    del u
    gc.collect()
    assert dead() is None


def test_toposort_lists_sources_first_and_each_node_once() -> None:
    x = param(0, (), dtypes.int32)
    u = x
    for _ in range(64):  # 2^64 paths
        u = UOp(Op.ADD, u, u)
    order = u.toposort()
    assert len(order) == len(set(order)) == 66
    position = {v: i for i, v in enumerate(order)}
    assert all(position[s] < position[v] for v in order for s in v.src)
    assert order[-1] is u
    y, z = (param(k, (), dtypes.int32) for k in (1, 2))
    for of_three in (UOp(Op.MULACC, u, y, z), UOp(Op.MULACC, z, y, u)):
        root = UOp(Op.NEG, of_three)
        assert set(root.toposort()) == {*order, y, z, of_three, root}


def test_substitute_replaces_and_does_not_search_what_it_puts_in() -> None:
    x, y = param(0, (2,), dtypes.int32), param(1, (2,), dtypes.int32)
    u = UOp(Op.SUB, UOp(Op.NEG, x), y)
    assert u.substitute({x: y, y: x}) is UOp(Op.SUB, UOp(Op.NEG, y), x)
    assert u.substitute({x: UOp(Op.NEG, x)}).src[0].src[0].src[0] is x
    assert u.substitute({}) is u


def test_a_node_keeps_its_arg_and_tag_over_other_sources() -> None:
    x, y = param(0, (2,), dtypes.int32), param(1, (2,), dtypes.int32)
    u = UOp(Op.FLIP, x, arg=FlipArg((True,)), tag="t")
    assert u.with_src([y]) is UOp(Op.FLIP, y, arg=FlipArg((True,)), tag="t")
    assert u.with_src([x]) is u


def test_every_op_is_declared_with_a_sentence_and_every_arg_is_used() -> None:
    assert set(DECLARATIONS) == set(Op)
    for declaration in DECLARATIONS.values():
        assert declaration.doc.endswith("."), declaration.op
        assert declaration.section
        assert len(set(declaration.src)) == len(declaration.src), declaration.op
    kinds = {k for _, k in inspect.getmembers(uop.spec.args, inspect.isclass) if issubclass(k, Arg)}
    assert kinds - {Arg} == {d.arg for d in DECLARATIONS.values() if d.arg is not None}
    assert all(fields(k) for k in kinds - {Arg})


def test_every_op_has_an_example(examples: dict[Op, UOp]) -> None:
    assert set(examples) == set(Op)
    assert all(u.op is op for op, u in examples.items())


@pytest.mark.parametrize(
    "op", [d.op for d in DECLARATIONS.values() if d.decomposition], ids=lambda op: op.name
)
def test_a_decomposition_has_the_properties_of_its_op(op: Op, examples: dict[Op, UOp]) -> None:
    u = examples[op]
    parts = u.decompose()
    assert parts is not None
    assert (parts.dtype, parts.shape, parts.device) == (u.dtype, u.shape, u.device)
    assert op not in {v.op for v in parts.toposort()}


def test_an_op_without_decomposition_has_none() -> None:
    assert index_const(1).decompose() is None
