"""Edition 2026-06 by hand: the forms of its tables that the core has changed."""

from __future__ import annotations

import numpy as np
import pytest

from uop.interpreter.evaluate import evaluate
from uop.spec.args import (
    AxisType,
    GetAddrArg,
    GetTupleArg,
    LoadArg,
    PadArg,
    PadFill,
    RangeArg,
    ReduceArg,
)
from uop.spec.dtype import dtypes
from uop.spec.editions import EDITIONS, parse, print_program
from uop.spec.errors import InvalidError, MalformedError, UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, param

X = param(0, (3,), dtypes.int32)
PARAM = "%0 = PARAM [3] {slot=0, dtype=int32}"
BUFFER = "%0 = BUFFER [3] {slot=0, dtype=int32}"

TABLE = {
    "g": "GLOBAL", "l": "LOCAL", "w": "WARP", "t": "THREAD", "L": "LOOP", "R": "REDUCE",
    "G": "GROUP_REDUCE", "u": "UPCAST", "r": "UNROLL",
}  # fmt: skip
"""The letter of each AxisType, from the document's table."""


def read(*lines: str) -> UOp:
    return parse("\n".join(("edition 2026-06", *lines)))


@pytest.mark.parametrize("said", ["%2, 1", "%2 {idx=1}", "%2, 1 {idx=1}"])
def test_an_element_of_a_tuple_is_named_by_an_operand_and_the_arg(said: str) -> None:
    u = read(PARAM, "%1 = NEG %0", "%2 = TUPLE %0, %1", f"%3 = GETTUPLE {said} : int32[3]")
    assert (u.op, u.arg) == (Op.GETTUPLE, GetTupleArg(1))
    assert np.asarray(evaluate(u, {0: np.array([3, -4, 5], np.int32)})).tolist() == [-3, 4, -5]
    text = print_program(u, "2026-06")
    assert text.splitlines()[-1] == "%3 = GETTUPLE %2, 1 {idx=1} : int32[3]"
    assert parse(text) is u


@pytest.mark.parametrize("said", ["%2", "%2, 0 {idx=1}", "%2, %1"])
def test_an_element_that_is_not_named_once_is_refused(said: str) -> None:
    with pytest.raises(InvalidError, match=r"GETTUPLE\.index"):
        read(PARAM, "%1 = NEG %0", "%2 = TUPLE %0, %1", f"%3 = GETTUPLE {said}")


def test_an_address_names_its_device() -> None:
    u = read(BUFFER, '%1 = GETADDR %0, "GPU" : uint64[]')
    assert (u.op, u.arg) == (Op.GETADDR, GetAddrArg("GPU"))
    assert u is read(BUFFER, '%1 = DEVICE {device="GPU"}', "%2 = GETADDR %0, %1")
    text = print_program(u, "2026-06")
    assert text.splitlines()[-1] == '%1 = GETADDR %0, "GPU" : uint64[]'
    assert parse(text) is u
    for dev in ("1", "%0"):
        with pytest.raises(InvalidError, match=r"GETADDR\.device"):
            read(BUFFER, f"%1 = GETADDR %0, {dev}")
    with pytest.raises(InvalidError, match=r"GETADDR\.device.*found \('A', 'B'\)|A.*B"):
        read(BUFFER, '%1 = DEVICE {device=("A","B")}', "%2 = GETADDR %0, %1")


def test_copy_is_a_load_to_a_device() -> None:
    u = read(PARAM, '%1 = COPY %0 {device="GPU"} : int32[3] @"GPU"')
    assert u is UOp(Op.LOAD, X, arg=LoadArg("GPU"))
    assert parse(print_program(u, "2026-06")) is u


def test_pad_has_no_arg_and_leaves_elements_absent() -> None:
    u = read(PARAM, "%1 = PAD %0, [1], [5]")
    assert u is UOp(Op.PAD, X, dims((1,)), dims((5,)), arg=PadArg(PadFill.INVALID))
    text = print_program(u, "2026-06")
    assert text.splitlines()[-1] == "%1 = PAD %0, [1], [5] : int32[5]"
    assert parse(text) is u
    zeros = UOp(Op.PAD, X, dims((1,)), dims((5,)), arg=PadArg(PadFill.ZERO))
    with pytest.raises(UnsupportedError, match=r"cannot say PAD: .* none with zeros"):
        print_program(zeros, "2026-06")
    with pytest.raises(MalformedError, match="PAD has no arg"):
        read(PARAM, "%1 = PAD %0, [1], [5] {fill=ZERO}")


@pytest.mark.parametrize("letter", TABLE)
@pytest.mark.parametrize("edition", ["2026-05", "2026-06", "2026-07"])
def test_the_type_of_a_loop_has_a_letter(edition: str, letter: str) -> None:
    said = f"type={letter}" if edition != "2026-07" else f"id=0, axis_type={letter}"
    u = parse(f"edition {edition}\n%0 = RANGE 4 {{{said}}}")
    assert u.arg == RangeArg(0, AxisType[TABLE[letter]])
    assert TABLE[letter] in print_program(u, edition)


def test_loops_are_numbered_as_in_the_edition_before() -> None:
    loops = ("%0 = RANGE 4 {type=g}", "%1 = RANGE 4 {type=R}", "%2 = TUPLE %0, %1")
    before, after = (parse("\n".join((f"edition {e}", *loops))) for e in ("2026-05", "2026-06"))
    assert before is after
    expected = [RangeArg(0, AxisType.GLOBAL), RangeArg(1, AxisType.REDUCE)]
    assert [r.arg for r in after.src] == expected


def test_a_condition_is_of_any_dtype() -> None:
    u = read(PARAM, "%1 = CONST {value=1, dtype=int8}", "%2 = CONST {value=2, dtype=int8}",
             "%3 = WHERE %0, %1, %2 : int8[3]")  # fmt: skip
    one, two = const(1, dtypes.int8), const(2, dtypes.int8)
    assert u is UOp(Op.WHERE, UOp(Op.CMPNE, X, const(0, dtypes.int32)), one, two)


def test_it_has_no_slice_and_the_edition_before_no_address() -> None:
    with pytest.raises(UnsupportedError, match="2026-06 has no SLICE"):
        read(PARAM, "%1 = SLICE %0, 0 {size=2, dtype=int32}")
    for name, has in (("2026-05", "SLICE"), ("2026-06", "GETADDR")):
        assert has in EDITIONS[name].words
    assert "GETADDR" not in EDITIONS["2026-05"].words


@pytest.mark.parametrize(
    ("edition", "arg"), [("2026-05", "axes=(0)"), ("2026-06", "axes=(0)"), ("2026-07", "n=1")]
)
def test_a_fold_by_an_op_that_the_edition_lacks_is_refused(edition: str, arg: str) -> None:
    lines = (f"edition {edition}", PARAM, f"%1 = REDUCE %0 {{op=MIN, {arg}}}")
    with pytest.raises(UnsupportedError, match=f"edition {edition} has no MIN"):
        parse("\n".join(lines))
    with pytest.raises(UnsupportedError, match=f"edition {edition} cannot say|has no MIN"):
        print_program(UOp(Op.REDUCE, X, arg=ReduceArg(Op.MIN, (0,))), edition)
