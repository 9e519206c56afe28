"""What kernels know by name or by text: INS and CUSTOM, in every form and on OpenCL and CUDA."""

from __future__ import annotations

import numpy as np
import pytest
from kernels import argument, kernel_param, load, loop, program, special, store, vector

from uop.compiler.pipeline import compile
from uop.compiler.runtime.cuda import nvrtc_compile
from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import np_dtype
from uop.spec.args import AxisType, CustomArg, InsArg, ReduceArg
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, index_const

SIZE = 8
U32 = dtypes.uint32
MAX = CustomArg("max({0}, {1})", U32)
WORDS = {
    0: np.zeros(SIZE, np.uint32),
    1: np.array([0, 1, 2**32 - 1, 2**31, 12345, 2**31 - 1, 255, 2**16], np.uint32),
    2: np.array([5, 0, 7, 2**31 + 1, 12346, 3, 254, 2**17], np.uint32),
}


def run_both(root: UOp, target: str = "opencl") -> list[list[int]]:
    """The result in slot 0 of the interpreter and of the compiled program."""
    found = evaluate(root, WORDS), compile(root, target).run(WORDS)
    assert all(isinstance(f, dict) for f in found)
    return [f[0].tolist() for f in found]  # type: ignore[index]


def computed(op: Op, arg: InsArg | CustomArg, i: UOp, count: int, dtype: DType = U32) -> UOp:
    """A kernel of an op on elements of the other buffers."""
    operands = [load(kernel_param(1 + k, SIZE, dtype), i) for k in range(count)]
    effect = store(kernel_param(0, SIZE, dtype), i, UOp(op, *operands, arg=arg))
    effect = UOp(Op.END, effect, i) if i.op is Op.RANGE else effect
    return program(UOp(Op.SINK, effect), *(argument(k, SIZE, dtype) for k in range(3)))


COUNTERS = [special(SIZE), *(loop(0, SIZE, kind) for kind in AxisType)]
NAMES = {"mul_hi": 2, "popcount": 1, "clz": 1}
LARGER = np.maximum(WORDS[1], WORDS[2]).tolist()


@pytest.mark.usefixtures("opencl")
@pytest.mark.parametrize("i", COUNTERS, ids=["item", *(kind.name for kind in AxisType)])
def test_text_stands_in_a_kernel_of_any_form(i: UOp) -> None:
    assert run_both(computed(Op.CUSTOM, MAX, i, 2)) == [LARGER, LARGER]


@pytest.mark.usefixtures("opencl")
@pytest.mark.parametrize("target", ["opencl", "cuda-host"])
@pytest.mark.parametrize("name", NAMES)
def test_an_instruction_computes_what_the_interpreter_says(name: str, target: str) -> None:
    root = computed(Op.INS, InsArg(name, U32), loop(0, SIZE), NAMES[name])
    right, found = run_both(root, target)
    assert found == right
    assert any(right)


@pytest.mark.cuda
def test_nvrtc_takes_instructions_and_text() -> None:
    for name, count in NAMES.items():
        nvrtc_compile(
            compile(computed(Op.INS, InsArg(name, U32), COUNTERS[0], count), "cuda").source
        )
    nvrtc_compile(compile(computed(Op.CUSTOM, MAX, COUNTERS[0], 2), "cuda").source)


@pytest.mark.usefixtures("opencl")
def test_text_inside_a_fold() -> None:
    k, i = loop(1, SIZE, AxisType.REDUCE), loop(0, 2)
    larger = UOp(Op.CUSTOM, load(kernel_param(1, SIZE, U32), k), const(300, U32), arg=MAX)
    total = UOp(Op.REDUCE, larger, k, arg=ReduceArg(Op.ADD))
    effect = UOp(Op.END, store(kernel_param(0, SIZE, U32), i, total), i)
    root = program(UOp(Op.SINK, effect), *(argument(k, SIZE, U32) for k in range(3)))
    expected = sum(max(a, 300) for a in WORDS[1].tolist()) % 2**32
    assert run_both(root) == [[expected] * 2 + [0] * 6] * 2


@pytest.mark.usefixtures("opencl")
def test_an_instruction_on_vectors_is_one_for_each_element() -> None:
    some = vector([index_const(k) for k in (5, 1, 3)])
    operands = [load(kernel_param(1 + k, SIZE, U32), some) for k in range(2)]
    value = UOp(Op.INS, *operands, arg=InsArg("mul_hi", U32, (3,)))
    body = UOp(Op.SINK, store(kernel_param(0, SIZE, U32), some, value))
    root = program(body, *(argument(k, SIZE, U32) for k in range(3)))
    high = [a * b >> 32 for a, b in zip(WORDS[1].tolist(), WORDS[2].tolist(), strict=True)]
    expected = [high[k] if k in (5, 1, 3) else 0 for k in range(SIZE)]
    assert run_both(root) == [expected, expected]


@pytest.mark.usefixtures("opencl")
def test_a_bool_of_a_text_is_0_or_1() -> None:
    word = load(kernel_param(1, SIZE, U32), COUNTERS[0])
    is_set = UOp(Op.CUSTOM, word, const(6, U32), arg=CustomArg("{0} & {1}", dtypes.bool))
    chosen = UOp(Op.WHERE, is_set, const(1, U32), const(0, U32))
    body = UOp(Op.SINK, store(kernel_param(0, SIZE, U32), COUNTERS[0], chosen))
    compiled = compile(program(body, *(argument(k, SIZE, U32) for k in range(3))))
    found = compiled.run(WORDS)
    assert isinstance(found, dict)
    assert found[0].tolist() == [int(a & 6 != 0) for a in WORDS[1].tolist()]


def test_the_bits_of_a_small_float_are_no_operand_of_a_text() -> None:
    arg = CustomArg("max({0}, {1})", dtypes.float16)
    with pytest.raises(UnsupportedError, match="CUSTOM on float16: only its bits exist in C"):
        assert compile(computed(Op.CUSTOM, arg, COUNTERS[0], 2, dtypes.float16)).source


def test_an_instruction_on_another_dtype_is_refused_by_the_compiler_too() -> None:
    root = computed(Op.INS, InsArg("clz", dtypes.int8), COUNTERS[0], 1, dtypes.int8)
    with pytest.raises(UnsupportedError, match="clz on int8, expected uint32 or int32"):
        assert compile(root).source


def test_the_bits_of_a_negative_number_are_counted() -> None:
    values = np.array([-1, -(2**31), 5, 0, 1, 2, 3, 4], np.int32)
    arg = InsArg("popcount", dtypes.int32)
    root = computed(Op.INS, arg, COUNTERS[0], 1, dtypes.int32)
    found = evaluate(root, {1: values.astype(np_dtype(dtypes.int32))})
    assert isinstance(found, dict)
    assert found[0].tolist() == [(a % 2**32).bit_count() for a in values.tolist()]


@pytest.mark.parametrize("count", [1, 3])
def test_a_name_on_another_number_of_operands_has_no_meaning(count: int) -> None:
    for op, arg in ((Op.CUSTOM, MAX), (Op.INS, InsArg("mul_hi", U32))):
        value = UOp(op, *(const(7, U32) for _ in range(count)), arg=arg)
        body = UOp(Op.SINK, store(kernel_param(0, SIZE, U32), COUNTERS[0], value))
        with pytest.raises(UnsupportedError, match=f"no registered meaning for {count} operands"):
            evaluate(program(body, argument(0, SIZE, U32)))
