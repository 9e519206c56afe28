"""Edition 2026-05 by hand: flat buffers, zeros around a PAD, conditions of any dtype, COPY."""

from __future__ import annotations

import numpy as np
import pytest

from uop.interpreter.evaluate import evaluate
from uop.spec.args import BufferArg, GetTupleArg, LoadArg, PadArg, PadFill, RangeArg
from uop.spec.dtype import dtypes
from uop.spec.editions import parse, print_program
from uop.spec.errors import InvalidError, MalformedError, UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, dims, param

X = param(0, (3,), dtypes.int32)


def read(*lines: str) -> UOp:
    return parse("\n".join(("edition 2026-05", *lines)))


def test_a_buffer_is_flat_and_as_long_as_all_its_shards() -> None:
    one = read("%0 = BUFFER {size=6, dtype=int32}")
    assert (one.op, one.shape, one.arg) == (Op.BUFFER, (6,), BufferArg(0, dtypes.int32))
    two = read('%0 = BUFFER {size=6, dtype=int32, device=("A","B"), addrspace=GLOBAL}')
    assert (two.shape, two.axis) == ((12,), 0)
    with pytest.raises(InvalidError, match=r"BUFFER\.size"):
        read("%0 = BUFFER {size=-1, dtype=int32}")


def test_buffers_without_a_slot_are_numbered_and_equal_ones_are_one() -> None:
    root = read(
        "%0 = BUFFER {size=2, dtype=int32}",
        "%1 = BUFFER {size=2, dtype=int8}",
        "%2 = BUFFER {size=2, dtype=int32}",
        "%3 = TUPLE %0, %1, %2",
    )
    assert [u.arg.slot for u in root.src] == [0, 1, 0]  # type: ignore[union-attr]
    with pytest.raises(InvalidError, match=r"BUFFER\.number"):
        read(
            "%0 = BUFFER {size=2, dtype=int32}",
            "%1 = BUFFER {size=2, dtype=int8, slot=4}",
            "%2 = TUPLE %0, %1",
        )


def test_equal_loops_are_one_node_and_others_are_told_apart() -> None:
    root = read("%0 = RANGE 4 {type=LOOP}", "%1 = RANGE 4", "%2 = RANGE 5", "%3 = TUPLE %0, %1, %2")
    assert [u.arg for u in root.src] == [RangeArg(0), RangeArg(0), RangeArg(1)]


def test_a_core_buffer_is_its_flat_memory_under_its_shape() -> None:
    buffer = UOp(Op.BUFFER, dims((2, 3)), arg=BufferArg(7, dtypes.int16))
    assert print_program(buffer, "2026-05") == (
        "edition 2026-05\n"
        "%0 = BUFFER {size=6, dtype=int16, addrspace=GLOBAL, slot=7} : int16[6] &GLOBAL\n"
        "%1 = RESHAPE %0, [2,3] : int16[2,3] &GLOBAL\n"
    )


def test_pad_fills_with_zeros() -> None:
    u = read("%0 = PARAM [3] {slot=0, dtype=int32}", "%1 = PAD %0, [1], [5]")
    assert u is UOp(Op.PAD, X, dims((1,)), dims((5,)), arg=PadArg(PadFill.ZERO))
    given = {0: np.array([7, 8, 9], np.int32)}
    assert np.asarray(evaluate(u, given)).tolist() == [0, 7, 8, 9, 0]


def test_a_pad_with_invalid_elements_cannot_be_said() -> None:
    u = UOp(Op.NEG, UOp(Op.PAD, X, dims((1,)), dims((5,))))
    with pytest.raises(UnsupportedError, match="cannot say PAD"):
        print_program(u, "2026-05")


def test_a_condition_of_any_dtype_is_true_where_it_is_not_zero() -> None:
    u = read(
        "%0 = PARAM [4] {slot=0, dtype=float32}",
        "%1 = CONST {value=1, dtype=int8}",
        "%2 = CONST {value=2, dtype=int8}",
        "%3 = WHERE %0, %1, %2 : int8[4]",
    )
    assert u.src[0].op is Op.CMPNE
    given = {0: np.array([0.0, -0.0, np.nan, 0.5], np.float32)}
    assert np.asarray(evaluate(u, given)).tolist() == [2, 2, 1, 1]


def test_copy_is_a_load_to_a_device() -> None:
    u = read("%0 = PARAM [3] {slot=0, dtype=int32}", '%1 = COPY %0 {device="GPU"}')
    assert u is UOp(Op.LOAD, X, arg=LoadArg("GPU"))


def test_an_element_of_a_tuple_is_taken_by_the_arg() -> None:
    pair = UOp(Op.TUPLE, X, UOp(Op.NEG, X))
    u = UOp(Op.GETTUPLE, pair, arg=GetTupleArg(1))
    assert parse(print_program(u, "2026-05")) is u


def test_what_the_edition_does_not_have_is_named() -> None:
    with pytest.raises(UnsupportedError, match="2026-05 has no GETADDR"):
        read("%0 = PARAM [3] {slot=0, dtype=int32}", '%1 = GETADDR %0 {device="GPU"}')
    with pytest.raises(MalformedError, match="unknown op 'UNSHARD'"):
        read("%0 = UNSHARD")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%0 = NOISE", "expected edition NAME"),
        ("", "expected edition NAME"),
        ("edition 2026-05", "expected a node"),
        ("edition 2026-05\n%0 = PAD 1, [1]", "PAD.arity"),
        ("edition 2026-05\n%0 = BUFFER", "BUFFER.arg"),
        ("edition 2026-05\n%0 = BUFFER {dtype=int8}", "BUFFER lacks the arg field 'size'"),
        ("edition 1999-01\n%0 = BUFFER", "no edition '1999-01'"),
    ],
)
def test_bad_text_is_refused(text: str, message: str) -> None:
    with pytest.raises((MalformedError, InvalidError, UnsupportedError), match=message):
        parse(text)


def test_a_text_of_another_edition_is_refused() -> None:
    with pytest.raises(MalformedError, match="expected edition 2026-07, found 2026-05"):
        parse("edition 2026-05\n%0 = BUFFER {size=1, dtype=int8}", "2026-07")


def test_a_text_without_its_first_line_is_read_as_the_given_edition() -> None:
    u = parse("; a comment\n%0 = BUFFER {size=1, dtype=int8}", "2026-05")
    assert u.shape == (1,)
