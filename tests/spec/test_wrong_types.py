"""What Python lets a caller hand over and a node cannot be made of: named errors, never others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest

from uop.compiler.pipeline import compile
from uop.interpreter.evaluate import evaluate, evaluate_full
from uop.spec.args import (
    AddrSpace,
    AllReduceArg,
    Arg,
    AxisType,
    BinaryArg,
    BufferArg,
    ConstArg,
    FlipArg,
    LoadArg,
    PadArg,
    PadFill,
    ParamArg,
    PermuteArg,
    RangeArg,
    ReduceArg,
    SpecialArg,
    Unit,
)
from uop.spec.conditions.labels import CONDITIONS
from uop.spec.dtype import dtypes
from uop.spec.editions import EDITIONS
from uop.spec.editions.bestiary_args import BestiaryAxisType
from uop.spec.editions.july_2026 import LaterAxisType
from uop.spec.errors import InvalidError
from uop.spec.frontend.tensor import Tensor
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.text.program import parse, print_program
from uop.spec.uop import UOp, const, dims, param

P = param(0, (2, 3), dtypes.float32)
ARGS = sorted(
    {d.arg for d in DECLARATIONS.values() if d.arg}
    | {w.arg for e in EDITIONS.values() for w in e.words.values() if w.arg},
    key=lambda kind: kind.__name__,
)


class Strange:
    """Of no type that a field has."""


@pytest.mark.parametrize(
    ("make", "label", "node", "found"),
    [
        (lambda: PermuteArg(5), "ARG.c1", "PermuteArg.order: tuple[int, ...]", "5"),
        (lambda: PermuteArg([1, 0]), "ARG.c1", "PermuteArg.order", "[1, 0]"),
        (lambda: PermuteArg((True, False)), "ARG.c1", "PermuteArg.order", "(True, False)"),
        (lambda: PermuteArg((0, 1.0)), "ARG.c1", "PermuteArg.order", "(0, 1.0)"),
        (lambda: FlipArg((1, 0)), "ARG.c1", "FlipArg.flags: tuple[bool, ...]", "(1, 0)"),
        (lambda: BinaryArg("a"), "ARG.c1", "BinaryArg.data: bytes", "'a'"),
        (lambda: ReduceArg("ADD", (0,)), "ARG.c1", "ReduceArg.op: Op", "'ADD'"),
        (lambda: RangeArg(0, "LOOP"), "ARG.c1", "RangeArg.axis_type: AxisType", "'LOOP'"),
        (lambda: PadArg(AxisType.LOOP), "ARG.c1", "PadArg.fill: PadFill", "LOOP"),
        (lambda: LoadArg(1), "ARG.c1", "LoadArg.device: Device", "1"),
        (lambda: LoadArg(("a", 1)), "ARG.c1", "LoadArg.device", "('a', 1)"),
        (lambda: AllReduceArg(Op.ADD, ["a"]), "ARG.c1", "AllReduceArg.device", "['a']"),
        (lambda: ParamArg(True, dtypes.int8), "ARG.c1", "ParamArg.slot: int", "True"),
        (lambda: BufferArg(0, "int8"), "ARG.c1", "BufferArg.dtype: DType", "'int8'"),
        (lambda: ConstArg(1.5, dtypes.int8), "ARG.c1", "ConstArg.bits: int", "1.5"),
        (lambda: UOp("ADD", P, P), "NODE.c1", "UOp", "'ADD'"),
        (lambda: UOp([1], P), "NODE.c1", "UOp", "[1]"),
        (lambda: UOp(Op.ADD, 5), "NODE.c2", "ADD", "5"),
        (lambda: UOp(Op.TUPLE, P, 5), "NODE.c2", "TUPLE", "5"),
        (lambda: UOp(Op.ADD, P, [1.0]), "NODE.c2", "ADD", "[1.0]"),
        (lambda: UOp(Op.ADD, P, Tensor(1.0)), "NODE.c2", "ADD", "Tensor"),
        (lambda: UOp(Op.NEG, P, tag=5), "NODE.c3", "NEG", "5"),
        (lambda: UOp(Op.NEG, P, tag=[5]), "NODE.c3", "NEG", "[5]"),
        (lambda: UOp(Op.PERMUTE, P, arg=[1, 0]), "PERMUTE.arg", "PERMUTE", "[1, 0]"),
        (lambda: UOp(Op.PERMUTE, P, arg=SpecialArg("i")), "PERMUTE.arg", "PERMUTE", "SpecialArg"),
        (lambda: UOp(Op.ADD, P, P, arg=SpecialArg("i")), "ADD.arg", "ADD", "SpecialArg"),
        (lambda: P.with_src([5]), "NODE.c2", "PARAM", "5"),
        (lambda: P.substitute({P: 5}), "NODE.c4", "substitute", "5"),
        (lambda: P.substitute({5: P}), "NODE.c4", "substitute", "(5, "),
        (lambda: P.substitute(5), "NODE.c4", "substitute", "5"),
        (lambda: const("a", dtypes.int32), "CONST.number", "CONST", "'a' of dtypes.int32"),
        (lambda: const(np.float32(1), dtypes.int32), "CONST.number", "CONST", "1.0"),
        (lambda: const(1, "int32"), "CONST.number", "CONST", "1 of 'int32'"),
        (lambda: dims("ab"), "CONST.number", "CONST", "'a'"),
        (lambda: dims(5), "SHAPE.c1", "dims", "5"),
        (lambda: param(0, 5, dtypes.int8), "SHAPE.c1", "dims", "5"),
        (lambda: Tensor([1.0]).reshape("a"), "SHAPE.c1", "Tensor", "'a'"),
        (lambda: Tensor([1.0]).expand(2, 1.5), "SHAPE.c1", "Tensor", "1.5"),
        (lambda: Tensor([1.0]).permute([None]), "SHAPE.c1", "Tensor", "None"),
        (lambda: evaluate(5), "NODE.c5", "program", "5"),
        (lambda: evaluate_full("a"), "NODE.c5", "program", "'a'"),
        (lambda: evaluate(P, [1]), "INPUT.c6", "inputs", "[1]"),
        (lambda: compile(5), "NODE.c5", "program", "5"),
        (lambda: print_program(None), "NODE.c5", "program", "None"),
        (lambda: parse(5), "TEXT.c1", "parse", "5"),
        (lambda: parse(b"a"), "TEXT.c1", "parse", "b'a'"),
        (lambda: Tensor([1.0]).cast("foo"), "ARG.c1", "DTypeArg.dtype: DType", "'foo'"),
        (lambda: Tensor([1.0], dtype="foo"), "TENSOR.c5", "Tensor", "'foo'"),
        (lambda: Tensor(1.0, dtype="foo"), "TENSOR.c5", "Tensor", "'foo'"),
    ],
)
def test_a_wrong_type_is_named_with_the_line_of_the_caller(
    make: Callable[[], object], label: str, node: str, found: str
) -> None:
    with pytest.raises(InvalidError) as caught:
        make()
    error = caught.value
    assert error.label == label
    assert node in error.node
    assert found in error.found
    assert error.where.startswith(f"{__file__}:")


FITTING = (
    0, "a", b"", (), True, dtypes.int8, Op.ADD, AddrSpace.GLOBAL, AxisType.LOOP, PadFill.ZERO,
    Unit.BYTES, LaterAxisType.LOOP, BestiaryAxisType.LOOP,
)  # fmt: skip


def is_refused(kind: type[Arg], given: dict[str, object], name: str) -> bool:
    """Whether this field is the first that does not fit."""
    try:
        kind(**given)
    except InvalidError as error:
        title = CONDITIONS["ARG.c1"].title
        return str(error).startswith(f"ARG.c1: {title}\n  node: {kind.__name__}.{name}: ")
    return False


@pytest.mark.parametrize("kind", ARGS, ids=lambda kind: kind.__name__)
def test_every_field_of_every_arg_is_checked(kind: type[Arg]) -> None:
    given: dict[str, object] = {f.name: Strange() for f in fields(kind)}
    for name in given:
        for value in (Strange(), 1.5, (Strange(),), [0], {1: 2}):
            assert is_refused(kind, given | {name: value}, name)
        # What comes behind is reached with a value that fits.
        given[name] = next(v for v in FITTING if not is_refused(kind, given | {name: v}, name))
    assert kind(**given) == kind(**given)


def test_whatever_is_exact_is_a_number() -> None:
    assert const(np.float64(1.5), dtypes.float32) is const(1.5, dtypes.float32)
    assert const(np.int64(3), dtypes.int32) is const(3, dtypes.int32)
    assert const(Fraction(3, 2), dtypes.float32) is const(1.5, dtypes.float32)


def test_long_values_are_cut_in_errors() -> None:
    with pytest.raises(InvalidError) as caught:
        PermuteArg([*range(100_000)])
    assert len(str(caught.value)) < 500
