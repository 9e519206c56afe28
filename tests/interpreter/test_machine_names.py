"""What is known by name only: INS, CUSTOM, CUSTOMFUNCTION."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from kernels import (
    I32,
    argument,
    kernel_param,
    load,
    program,
    run,
    special,
    store,
)

from uop.interpreter.evaluate import evaluate
from uop.interpreter.kernel.launch import run_program
from uop.interpreter.numeric.storage import Array
from uop.interpreter.rules import codegen
from uop.interpreter.values import Value
from uop.spec.args import (
    CustomArg,
    CustomFunctionArg,
    InsArg,
)
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.kernel import functions
from uop.spec.kernel.instructions import INSTRUCTIONS, instruction_named
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const

SIZE = 8
LANE = special(SIZE)
U32 = dtypes.uint32


def instructed(op: Op, arg: InsArg | CustomArg, *operands: UOp) -> UOp:
    value = UOp(op, *operands, arg=arg)
    body = UOp(Op.SINK, store(kernel_param(0, SIZE, U32), LANE, value))
    return program(body, argument(0, SIZE, U32), argument(1, SIZE, U32), argument(2, SIZE, U32))


WORDS = np.array([0, 1, 2**32 - 1, 2**31, 12345, 2**31 - 1, 255, 2**16], np.uint32)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "mul_hi",
            [a * b >> 32 for a, b in zip(WORDS.tolist(), WORDS[::-1].tolist(), strict=True)],
        ),
        ("popcount", [a.bit_count() for a in WORDS.tolist()]),
        ("clz", [32 - a.bit_length() for a in WORDS.tolist()]),
    ],
)
def test_instructions_compute_what_their_name_says(name: str, expected: list[int]) -> None:
    operands = [load(kernel_param(k, SIZE, U32), LANE) for k in (1, 2)]
    used = operands if name == "mul_hi" else operands[:1]
    root = instructed(Op.INS, InsArg(name, U32), *used)
    assert run(root, WORDS, WORDS[::-1].copy()).tolist() == expected


def test_every_instruction_has_a_spelling_and_a_meaning() -> None:
    assert set(INSTRUCTIONS) == set(codegen.INSTRUCTIONS)
    for name in INSTRUCTIONS:
        for target in ("opencl", "cuda"):
            assert "{0}" in instruction_named(name).spelled(target)
    with pytest.raises(UnsupportedError, match="metal"):
        instruction_named("clz").spelled("metal")
    with pytest.raises(UnsupportedError, match="no instruction 'nop'"):
        instruction_named("nop")


@pytest.fixture
def known() -> Iterator[None]:
    """Custom text and a function that exist during one test."""

    @codegen.custom("rotate({0}, {1})")
    def rotate(u: UOp, a: Array, b: Array) -> Array:
        count = b % 32
        return np.asarray(a << count | a >> (32 - count) % 32)

    @functions.custom_function("scale", reads=(1, 2), writes=(0, 2))
    def scale(buffers: Sequence[Array], factor: Array) -> Sequence[Array]:
        return buffers[1] * factor, buffers[2] + buffers[1].sum(dtype=np.int32)

    yield
    del codegen.CUSTOM["rotate({0}, {1})"], functions.CUSTOM_FUNCTIONS["scale"]


@pytest.mark.usefixtures("known")
def test_custom_text_computes_what_is_registered_for_it() -> None:
    operands = [load(kernel_param(1, SIZE, U32), LANE), const(8, U32)]
    root = instructed(Op.CUSTOM, CustomArg("rotate({0}, {1})", U32), *operands)
    expected = [(a << 8 | a >> 24) % 2**32 for a in WORDS.tolist()]
    assert run(root, WORDS).tolist() == expected


def test_an_open_operand_opens_the_result_of_an_instruction() -> None:
    root = instructed(Op.INS, InsArg("clz", U32), load(kernel_param(1, SIZE, U32), LANE))
    mask = np.arange(SIZE) == 2
    given = {root.src[0].src[2]: Value(WORDS, None, mask)}
    found = run_program(root, given, None)[0].unspecified
    assert found is not None
    assert found.tolist() == mask.tolist()


def called(name: str, *meta: UOp) -> UOp:
    body = UOp(Op.CUSTOMFUNCTION, *meta, arg=CustomFunctionArg(name))
    return UOp(Op.SINK, UOp(Op.CALL, body, argument(0, 3), argument(1, 3), argument(2, 3)))


@pytest.mark.usefixtures("known")
def test_a_custom_function_runs_on_whole_buffers() -> None:
    given = {1: np.array([1, 2, 3], np.int32), 2: np.array([10, 20, 30], np.int32)}
    result = evaluate(called("scale", const(5, I32)), given)
    assert isinstance(result, dict)
    assert {k: v.tolist() for k, v in result.items()} == {0: [5, 10, 15], 2: [16, 26, 36]}


def test_a_custom_function_copies_and_what_is_open_stays_so() -> None:
    root = called("copy")
    source = root.src[0].src[2]
    result = run_program(root, {source: Value(np.array([4, 5, 6], np.int32))}, None)
    assert result[0].data.tolist() == [4, 5, 6]
    assert result[0].unspecified is None
    assert run_program(root, {}, None)[0].unspecified is not None


def test_unknown_names_are_unsupported() -> None:
    operand = load(kernel_param(1, SIZE, U32), LANE)
    for op, arg in ((Op.INS, InsArg("nop", U32)), (Op.CUSTOM, CustomArg("f({0})", U32))):
        with pytest.raises(UnsupportedError, match="no registered meaning"):
            run(instructed(op, arg, operand), WORDS)
    void = UOp(Op.INS, arg=InsArg("nop"))
    with pytest.raises(UnsupportedError, match="'nop' has no registered meaning"):
        run(program(UOp(Op.SINK, void), SIZE))
    with pytest.raises(UnsupportedError, match="'encdec' has no registered meaning"):
        evaluate(called("encdec"))


def test_a_name_has_one_meaning() -> None:
    with pytest.raises(ValueError, match="clz"):
        codegen.instruction("clz")(codegen.clz)
    with pytest.raises(ValueError, match="copy"):
        functions.custom_function("copy", reads=(1,), writes=(0,))(functions.copy)
