"""Programs as StableHLO: the text, the constants, and what its reference interpreter computes."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import graphs, stores
from hypothesis import given, settings
from stablehlo_programs import distinct, fault, fault_if_defined

from uop.conformance.adapters.backend import Inputs
from uop.conformance.adapters.compositions import compositions
from uop.conformance.adapters.stablehlo.flat import NAMES, literal
from uop.conformance.adapters.stablehlo.library import library
from uop.conformance.adapters.stablehlo.write import FlatBuilder, to_flat, to_stablehlo
from uop.conformance.backends.stablehlo import Portable, joined, portable
from uop.interpreter.numeric.storage import Array, constant, np_dtype, to_bits
from uop.spec.args import (
    AddrSpace,
    BinaryArg,
    BufferArg,
    CustomArg,
    DTypeArg,
    ParamArg,
    RangeArg,
    SourceArg,
)
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UndefinedError, UnsupportedError
from uop.spec.frontend.tensor import Tensor
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.uop import UOp, const, dims, index_const, param, variable

pytestmark = pytest.mark.slow

X = Tensor(param(0, (2, 3, 4), dtypes.float32))
V = Tensor(param(1, (3,), dtypes.int8))

GOLDEN = """\
module {
  func.func @main(%0: tensor<2x3x4xf32>) -> (tensor<4x2x1xf32>, tensor<2xf32>) {
    %1 = stablehlo.transpose %0, dims = [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
    %2 = stablehlo.reverse %1, dims = [2] : (tensor<4x2x3xf32>) -> tensor<4x2x3xf32>
    %3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.reduce(%2 init: %3) applies stablehlo.add across dimensions = [2] : \
(tensor<4x2x3xf32>, tensor<f32>) -> tensor<4x2xf32>
    %5 = stablehlo.reshape %4 : (tensor<4x2xf32>) -> tensor<4x2x1xf32>
    %6 = stablehlo.slice %0 [0:2, 1:2, 3:4] : (tensor<2x3x4xf32>) -> tensor<2x1x1xf32>
    %7 = stablehlo.reshape %6 : (tensor<2x1x1xf32>) -> tensor<2xf32>
    return %5, %7 : tensor<4x2x1xf32>, tensor<2xf32>
  }
}
"""


def results_of(program: Portable, inputs: Inputs) -> tuple[Array, ...]:
    """The results by StableHLO's interpreter."""
    module = library().parsed(program.flat.mlir())
    return program.results(library().evaluated(module, program.arguments(inputs)))


def ran(root: UOp) -> list[Array]:
    return [*results_of(portable(root), distinct(root))]


def test_a_module_is_written_op_by_op() -> None:
    turned = Tensor(param(0, (2, 3, 4), dtypes.float32)).permute(2, 0, 1).flip(2)
    root = UOp(
        Op.TUPLE, turned.reduce(Op.ADD, 2).uop, X.shrink((0, 2), (1, 2), (3, 4)).reshape(2).uop
    )
    assert to_stablehlo(root) == GOLDEN
    assert fault(root, distinct(root), ran(root)) is None


def test_a_flat_program_has_the_form_of_the_published_document() -> None:
    on_gpu = Tensor(param(0, (2, 3), dtypes.float32, "gpu:0"))
    table = UOp(Op.BINARY, arg=BinaryArg(b"\2\3"))
    root = UOp(Op.TUPLE, (-on_gpu).uop, table)
    assert str(to_flat(root)) == (
        "Main Function:\n"
        "inputs:\n"
        "    t0: [rank=(2), shape=([2, 3]), dtype=(float32), loc=(gpu:0)]\n"
        "t1: [rank=(2), shape=([2, 3]), dtype=(float32), loc=(gpu:0)] = NegateOp(t0)\n"
        "t2: [rank=(1), shape=([2]), dtype=(uint8), loc=(gpu:0)] = ConstantOp(data=[2, 3])\n"
        "outputs:\n"
        "    t1: [rank=(2), shape=([2, 3]), dtype=(float32), loc=(gpu:0)]\n"
        "    t2: [rank=(1), shape=([2]), dtype=(uint8), loc=(gpu:0)]"
    )


def test_a_flat_program_without_a_device_names_none() -> None:
    assert "loc" not in str(to_flat(X.uop))


def names_of(text: str) -> list[str]:
    """The ops of `main` in a module."""
    module = library().parsed(text)
    block = module.body.operations[0].operation.regions[0].blocks[0]
    return [op.operation.name for op in block.operations][:-1]


@settings(max_examples=25, deadline=None)
@given(graphs() | stores())
def test_each_flat_op_is_one_op_of_the_module(drawn: tuple[UOp, Inputs]) -> None:
    try:
        flat = to_flat(drawn[0])
    except (UndefinedError, UnsupportedError):
        return
    assert names_of(flat.mlir()) == [f"stablehlo.{op.name}" for op in flat.ops]


@settings(max_examples=40, deadline=None)
@given(graphs() | stores())
def test_random_programs_compute_what_the_spec_accepts(drawn: tuple[UOp, Inputs]) -> None:
    root, inputs = drawn
    try:
        program = portable(root)
    except (UndefinedError, UnsupportedError):
        return
    assert fault_if_defined(root, inputs, lambda: results_of(program, inputs)) is None


def _single(op: Op, dtype: DType) -> UOp:
    """A node of an elementwise op on parameters."""
    names = DECLARATIONS[op].src
    kinds = [dtypes.bool if name == "P" else dtype for name in names]
    sources = [param(slot, (48,), kind) for slot, kind in enumerate(kinds)]
    return UOp(op, *sources, arg=DTypeArg(dtypes.float32) if op is Op.CAST else None)


SINGLES = [
    _single(op, dtype)
    for op in sorted(compositions(FlatBuilder.ops, FlatBuilder.partial), key=lambda op: op.name)
    for dtype in NAMES
    if dtype in (*DECLARATIONS[op].dtypes,) and dtype is not dtypes.index
]


def test_every_elementwise_op_computes_what_the_spec_accepts_on_every_dtype() -> None:
    assert len(SINGLES) > 250
    programs = [portable(root) for root in SINGLES]
    inputs = [distinct(root) for root in SINGLES]
    arguments = [a for p, batch in zip(programs, inputs, strict=True) for a in p.arguments(batch)]
    results = library().evaluated(library().parsed(joined(programs)), arguments)
    faults = {}
    for k, root in enumerate(SINGLES):
        found = fault(root, inputs[k], programs[k].results([results[k]]))
        faults |= {(root.op, root.src[0].dtype): found} if found else {}
    assert not faults


def test_a_module_reads_back_as_the_text_that_mlir_prints() -> None:
    text = str(library().parsed(joined([portable(root) for root in SINGLES])))
    assert str(library().parsed(text)) == text


SPECIAL = {
    dtypes.bool: [0, 1],
    dtypes.uint64: [0, (1 << 64) - 1, 1 << 63],
    dtypes.int64: [1 << 63, (1 << 63) - 1, (1 << 64) - 1],
    dtypes.float64: [1 << 63, 1, 0x7FF8000000000001, 0xFFF0000000000000, 0x3FB999999999999A],
    dtypes.float32: [1 << 31, 1, 0x7FC00001, 0xFF800000, 0x3DCCCCCD, 0x7F7FFFFF],
    dtypes.float16: [0x8000, 1, 0x7E01, 0xFC00, 0x2E66, 0x7BFF],
    dtypes.bfloat16: [0x8000, 1, 0x7FC1, 0xFF80, 0x3DCD, 0x7F7F],
    dtypes.fp8e4m3: [*range(256)],
    dtypes.fp8e5m2: [*range(256)],
}


@pytest.mark.parametrize("dtype", SPECIAL, ids=lambda dtype: dtype.name)
def test_constants_keep_their_bits(dtype: DType) -> None:
    values = np.array([constant(bits, dtype) for bits in SPECIAL[dtype]], np_dtype(dtype))
    shape = f"{len(values)}x{NAMES[dtype]}"
    text = (
        f"func.func @main() -> tensor<{shape}> {{\n"
        f"  %0 = stablehlo.constant dense<{literal(values, dtype)}> : tensor<{shape}>\n"
        f"  return %0 : tensor<{shape}>\n}}"
    )
    module = library().parsed(text)
    op = module.body.operations[0].operation.regions[0].blocks[0].operations[0]
    with library().context:
        read = library().elements(op.operation.attributes["value"], dtype, values.shape)
    assert to_bits(read).tolist() == to_bits(values).tolist()


def deep(axes: int) -> UOp:
    return Tensor(param(0, (2, *[1] * (axes - 2), 3), dtypes.int32)).flip(axes - 1).uop


def stored() -> UOp:
    """The second STORE follows the first, and leaves elements as they were."""
    buffer = UOp(Op.BUFFER, dims((4,)), arg=BufferArg(20, dtypes.int32))
    first = UOp(Op.STORE, buffer, param(3, (4,), dtypes.int32))
    part = UOp(Op.SHRINK, UOp(Op.AFTER, buffer, first), dims((1,)), dims((2,)))
    return UOp(Op.SINK, first, UOp(Op.STORE, part, param(4, (2,), dtypes.int32)))


def cast(u: Tensor, dtype: DType) -> UOp:
    return u.bitcast(dtype).uop


PROGRAMS: dict[str, UOp] = {
    "bool to uint8": cast(Tensor(param(0, (5,), dtypes.bool)), dtypes.uint8),
    "bool to int32": cast(Tensor(param(0, (2, 4), dtypes.bool)), dtypes.int32),
    "uint8 to bool": cast(Tensor(param(0, (6,), dtypes.bool)).cast(dtypes.uint8), dtypes.bool),
    "narrower": cast(Tensor(param(0, (2, 3), dtypes.float64)), dtypes.uint16),
    "wider": cast(Tensor(param(0, (2, 8), dtypes.int16)), dtypes.float64),
    "of no elements": (Tensor(param(0, (0, 3), dtypes.float32)) + 1).reduce(Op.ADD, 0).uop,
    "no elements": (Tensor(param(0, (0, 3), dtypes.float16)) * 2).uop,
    "maximum of none": Tensor(param(0, (0,), dtypes.fp8e4m3)).reduce(Op.MAX, 0).uop,
    "no axes": (Tensor(param(0, (), dtypes.bfloat16)) * 3).uop,
    "60 axes": deep(60),
    "row by data": X[:, Tensor.of(Op.MOD, V, Tensor(3, dtypes.int8))].uop,
    "element by data": X[1, (V % 3)[1], :].uop,
    "by two data": X[V % 2, V % 3, 1:].uop,
    "rows of none": Tensor(param(0, (0, 3), dtypes.int16))[Tensor(param(1, (0,), dtypes.int8))].uop,
    "stored": stored(),
    "absent elements": (X.pad((1, 0), (0, 1), (0, 0)) * 2).sum(0).uop,
    "absent in the result": X.pad((1, 0), (0, 1), (2, 3)).uop,
    "without inputs": (Tensor.stack(Tensor(2), Tensor(3)) + 1).uop,
    "of bytes": UOp(Op.BINARY, arg=BinaryArg(bytes(range(9)))),
    "nothing but an input": X.uop,
    "a result twice": UOp(Op.TUPLE, X.uop, X.uop),
    "threefry": UOp(Op.THREEFRY, *(param(k, (4,), dtypes.uint64) for k in range(2))),
    "division": UOp(Op.IDIV, *(param(k, (48,), dtypes.int8) for k in range(2))),
    "a shape of its own": Tensor.stack(V, V, V).permute(1, 0).uop,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_computes_what_the_spec_accepts(name: str) -> None:
    root = PROGRAMS[name]
    assert fault(root, distinct(root), ran(root)) is None


SYMBOLIC = param(1, (variable(0, 1, 5),), dtypes.int8)
LOOP = UOp(Op.RANGE, index_const(4), arg=RangeArg(0))
BUFFER = UOp(Op.BUFFER, dims((4,)), arg=BufferArg(0, dtypes.int32))
MEMORY = UOp(Op.PARAM, dims((4,)), arg=ParamArg(0, dtypes.int32, None, AddrSpace.GLOBAL))
ONE = const(1, dtypes.int32)
KERNEL = UOp(Op.SINK, UOp(Op.STORE, UOp(Op.INDEX, MEMORY, index_const(0)), ONE))
REFUSED = {
    "a symbolic size": (SYMBOLIC, r"expected sizes that are numbers\n  node: PARAM"),
    "a kernel": (UOp(Op.CALL, KERNEL, BUFFER), "expected a tensor program, found .* mixed"),
    "a loop": (UOp(Op.CAST, LOOP, arg=DTypeArg(dtypes.int32)), "RANGE in a tensor graph"),
    "devices": (param(0, (4, 2), dtypes.int8, ("A", "B")), r"PARAM on the devices \(A, B\)"),
    "nothing": (UOp(Op.STACK), r"a STACK of nothing\n  node: STACK\(\)"),
    "text": (UOp(Op.SOURCE, arg=SourceArg("f")), "SOURCE in a tensor graph"),
    "custom": (UOp(Op.CUSTOM, arg=CustomArg("f", dtypes.int8, (2,))), "CUSTOM in a tensor graph"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_program_without_an_image_is_refused_by_name_and_node(name: str) -> None:
    root, message = REFUSED[name]
    with pytest.raises(UnsupportedError, match=message):
        to_stablehlo(root)


def test_a_number_out_of_bounds_has_no_meaning() -> None:
    with pytest.raises(UndefinedError, match=r"INDEX.u1(.|\n)*3 on axis 1 of size 3"):
        to_stablehlo(UOp(Op.INDEX, X.uop, index_const(0), index_const(3)))


def test_a_program_without_results_is_a_module_without_results() -> None:
    root = UOp(Op.SINK)
    assert names_of(to_stablehlo(root)) == []
    assert ran(root) == []
