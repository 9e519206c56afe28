"""Tensor programs as ONNX models: goldens, what ONNX takes, and what its evaluator gives."""

from __future__ import annotations

from contextlib import suppress
from itertools import product

import numpy as np
import pytest
from graphs import SLOW, Inputs, graphs, stores
from hypothesis import given, reject

from uop import evaluate, from_onnx, to_onnx
from uop.conformance.adapters.backend import LAYOUTS, programs_of
from uop.conformance.adapters.compositions import compositions
from uop.conformance.adapters.onnx.library import ELEMENTS, NAMES, of_schemas
from uop.conformance.adapters.onnx.write import OPSET, OnnxBuilder, containing, wrapping
from uop.conformance.judging.compare import compare
from uop.interpreter.accept import accept
from uop.interpreter.numeric.storage import Array
from uop.spec.args import DTypeArg
from uop.spec.dtype import INTS, DType, dtypes
from uop.spec.errors import InvalidError, UndefinedError, UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.text.program import parse
from uop.spec.uop import UOp, param

onnx = pytest.importorskip("onnx", reason="needs the extra onnx")
reference = pytest.importorskip("onnx.reference")

LATEST = onnx.defs.onnx_opset_version()
WITH_BITCAST = 26
HEAD = f'< ir_version: 10, opset_import: ["" : {OPSET}] > '


@pytest.mark.parametrize(
    ("text", "model"),
    [
        (
            "%0 = PARAM [2,3,4] {slot=4, dtype=float32}\n%1 = PERMUTE %0 {order=(2,0,1)}\n"
            "%2 = SHRINK %1, [1,0,0], [2,1,3]",
            "program (float[2,3,4] in4) => (float[2,1,3] out0)"
            " <int64[2] c0 = {1,0}, int64[2] c1 = {3,1}, int64[2] c2 = {0,1}>"
            " { t0 = Transpose <perm: ints = [2, 0, 1]> (in4) t1 = Slice (t0, c0, c1, c2)"
            " out0 = Identity (t1) }",
        ),
        (
            "%0 = PARAM [2] {slot=0, dtype=uint16}\n%1 = PARAM [2] {slot=1, dtype=uint16}\n"
            "%2 = SHL %0, %1",
            "program (uint16[2] in0, uint16[2] in1) => (uint16[2] out0)"
            " { t0 = BitShift <direction: string = \"LEFT\"> (in0, in1) out0 = Identity (t0) }",
        ),
        (
            "%0 = PARAM [2,3] {slot=0, dtype=int16}\n%1 = REDUCE %0 {op=MAX, axes=(1)}",
            "program (int16[2,3] in0) => (int16[2,1] out0) <int64[1] c0 = {1}>"
            " { t0 = Cast <to: int = 6> (in0) t1 = ReduceMax <keepdims: int = 1> (t0, c0)"
            " t2 = Cast <to: int = 5> (t1) out0 = Identity (t2) }",
        ),
        (
            "%0 = PARAM [2] {slot=0, dtype=float16}\n%1 = CAST %0 {dtype=fp8e4m3}",
            "program (float16[2] in0) => (float8e4m3fn[2] out0)"
            " { t0 = Cast <saturate: int = 0, to: int = 17> (in0) out0 = Identity (t0) }",
        ),
    ],
)  # fmt: skip
def test_goldens(text: str, model: str) -> None:
    printed = onnx.printer.to_text(to_onnx(parse(text)))
    assert " ".join(printed.split()) == HEAD + model


EVERY = (*LAYOUTS, Op.REDUCE, *compositions(OnnxBuilder.ops, OnnxBuilder.partial))
DTYPES = (*ELEMENTS.values(), dtypes.index)


@pytest.mark.parametrize("op", EVERY, ids=lambda op: op.name)
def test_every_op_on_every_dtype_is_a_valid_model_or_unsupported(op: Op) -> None:
    reasons = set()
    for dtype, opset in product(DTYPES, {OPSET, min(WITH_BITCAST, LATEST)}):
        with suppress(InvalidError):  # The language has no such cell.
            for root in programs_of(op, param(0, (1, 2), dtype)):
                try:
                    model = to_onnx(root, opset)
                except UnsupportedError as error:
                    reasons.add(str(error).partition(" of ")[0])
                else:
                    onnx.checker.check_model(model, full_check=True)
    assert reasons <= {f"there is no {name}" for name in NAMES}


def test_what_only_a_newer_opset_has_is_unsupported_in_an_older_one() -> None:
    root = UOp(Op.BITCAST, param(0, (2,), dtypes.float32), arg=DTypeArg(dtypes.uint32))
    with pytest.raises(UnsupportedError, match="there is no BitCast of float32"):
        to_onnx(root, 22)


def test_the_table_of_schemas() -> None:
    takes = of_schemas(OPSET)
    assert takes.keys() == {*NAMES}
    assert takes["And"] == {dtypes.bool}
    assert takes["BitShift"] == {d for d in INTS if not d.is_signed}
    assert takes["BitCast"] == frozenset()
    assert {dtypes.int8, dtypes.bfloat16} <= takes["Add"]
    assert takes["Where"] >= {dtypes.bool, dtypes.float16}


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16])
def test_carriers(dtype: DType) -> None:
    """By hand: a CAST to any of `wrapping` keeps the low bits, one to `containing` the value."""
    numbers = (dtype.min, -1, 0, 1, dtype.max)
    for other in wrapping(dtype):
        assert all((n % 2**other.bits - n) % 2**dtype.bits == 0 for n in numbers)
    for other in containing(dtype):
        assert other.min <= dtype.min
        assert dtype.max <= other.max
    assert containing(dtypes.uint64) == ()


@SLOW
@given(graphs())
def test_the_evaluator_of_onnx_gives_what_is_accepted(program: tuple[UOp, Inputs]) -> None:
    agrees(*program)


@SLOW
@given(stores())
def test_the_evaluator_of_onnx_writes_what_is_accepted(program: tuple[UOp, Inputs]) -> None:
    agrees(*program)


@SLOW
@given(graphs())
def test_a_model_that_is_written_is_read_as_a_program_of_the_same_meaning(
    program: tuple[UOp, Inputs],
) -> None:
    root, inputs = program
    try:
        accepted = accept(root, inputs)
        read = from_onnx(to_onnx(root, min(WITH_BITCAST, LATEST)))
    except (UndefinedError, UnsupportedError):
        reject()
    found = evaluate(read.root, read.inputs(**{n: inputs[int(n[2:])] for n in read.slots}))
    mismatch = compare(accepted, found if isinstance(found, tuple) else (found,)).mismatch
    assert mismatch is None, mismatch.message


def agrees(root: UOp, inputs: Inputs) -> None:
    if rounds_twice(root):
        reject()
    try:
        accepted = accept(root, inputs)
        found = evaluated(root, inputs)
    except (UndefinedError, UnsupportedError):
        reject()
    mismatch = compare(accepted, found).mismatch
    assert mismatch is None, mismatch.message


def rounds_twice(root: UOp) -> bool:
    """Whether a program has what the evaluator is known to compute by way of float32."""
    wide = (dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.uint64, dtypes.index, dtypes.float64)
    casts = [u for u in root.toposort() if u.op is Op.CAST]
    return any(u.src[0].dtype in wide and u.dtype is dtypes.bfloat16 for u in casts)


def evaluated(root: UOp, inputs: Inputs) -> tuple[Array, ...]:
    model = to_onnx(root, min(WITH_BITCAST, LATEST))
    names = [i.name for i in model.graph.input]
    with np.errstate(all="ignore"):
        results = reference.ReferenceEvaluator(model).run(
            None, {name: inputs[int(name[2:])] for name in names}
        )
    return tuple(np.asarray(r) for r in results)


@pytest.mark.parametrize(
    ("text", "inputs"),
    [
        ("%0 = PARAM [] {slot=0, dtype=int8}\n%1 = IDIV %0, %0", {0: np.array(-128, np.int8)}),
        ("%0 = PARAM [0,3] {slot=0, dtype=float32}\n%1 = REDUCE %0 {op=MAX, axes=(0)}\n"
         "%2 = NEG %0\n%3 = TUPLE %1, %2", {0: np.zeros((0, 3), np.float32)}),
        ("%0 = BUFFER [5] {slot=0, dtype=int16, addrspace=GLOBAL}\n"
         "%1 = PARAM [3] {slot=1, dtype=int16}\n%2 = PAD %1, [1], [5]\n%3 = STORE %0, %2\n"
         "%4 = SINK %3", {0: np.arange(5, dtype=np.int16), 1: np.array([7, 8, 9], np.int16)}),
        ("%0 = PARAM [2,3] {slot=0, dtype=float32}\n%1 = PARAM [4] {slot=1, dtype=uint8}\n"
         "%2 = CONST {value=1, dtype=index}\n%3 = INDEX %0, %2, %1",
         {0: np.arange(6, dtype=np.float32).reshape(2, 3), 1: np.array([2, 0, 1, 2], np.uint8)}),
        ("%0 = PARAM [3] {slot=0, dtype=int32}\n%1 = CONST {value=1, dtype=int32}\n"
         "%2 = SHR %0, %1", {0: np.array([-7, -(2**31), 7], np.int32)}),
        ("%0 = PARAM [2,2] {slot=0, dtype=uint16}\n%1 = BITCAST %0 {dtype=uint32}\n"
         "%2 = BITCAST %1 {dtype=uint8}", {0: np.array([[1, 515], [65535, 258]], np.uint16)}),
    ],
)  # fmt: skip
def test_programs_by_hand(text: str, inputs: dict[int, Array]) -> None:
    root = parse(text)
    found = evaluated(root, inputs)
    assert compare(accept(root, inputs), found).mismatch is None
