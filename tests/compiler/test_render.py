"""Rendered kernels: their text, what they compute on OpenCL, alone and as the cases of one."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from uop.compiler.runtime.cuda import nvrtc_compile
from uop.compiler.runtime.device import Launch
from uop.compiler.runtime.opencl import OpenCLDevice
from uop.compiler.stages.render.grid import grid_of
from uop.compiler.stages.render.stage import (
    PART,
    BundledKernel,
    params,
    render,
    render_bundle,
)
from uop.compiler.targets.cuda import CUDA
from uop.compiler.targets.opencl import OPENCL
from uop.spec.args import (
    AddrSpace,
    BufferArg,
    ConstArg,
    DTypeArg,
    ParamArg,
    RangeArg,
    SourceArg,
    SpecialArg,
)
from uop.spec.dtype import DType, Number, dtypes
from uop.spec.errors import PassError, UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, index_const

Array = NDArray[Any]


def pointer(slot: int, size: int, dtype: DType) -> UOp:
    return UOp(Op.PARAM, dims((size,)), arg=ParamArg(slot, dtype, None, AddrSpace.GLOBAL))


def item(size: int, name: str = "gidx0") -> UOp:
    return UOp(Op.SPECIAL, index_const(size), arg=SpecialArg(name))


def loop(size: int, number: int = 0) -> UOp:
    return UOp(Op.RANGE, index_const(size), arg=RangeArg(number))


def load(buffer: UOp, index: UOp, *gate: UOp) -> UOp:
    return UOp(Op.LOAD, UOp(Op.INDEX, buffer, index), *gate)


def store(buffer: UOp, index: UOp, value: UOp, *gate: UOp) -> UOp:
    return UOp(Op.STORE, UOp(Op.INDEX, buffer, index), value, *gate)


def cast(value: UOp, dtype: DType) -> UOp:
    return UOp(Op.CAST, value, arg=DTypeArg(dtype))


def linear(*effects: UOp) -> UOp:
    """Sources before uses, in the order of the effects."""
    return UOp(Op.LINEAR, *UOp(Op.GROUP, *effects).toposort())


def run(device: OpenCLDevice, kernel: UOp, *buffers: Array) -> list[Array]:
    source = OPENCL.source([OPENCL.kernel(kernel, "k")])
    slots = tuple(range(len(buffers)))
    grid = grid_of(kernel, local_size=OPENCL.local_size)
    launch = Launch("k", slots, grid.groups, grid.items)
    return device.run(device.build(source), [launch], buffers)


def doubled(size: int = 100, dtype: DType = dtypes.float32) -> UOp:
    """b1 = b0 * 2 + 1"""
    i = item(size)
    value = load(pointer(0, size, dtype), i)
    product = UOp(Op.MUL, value, const(2, dtype))
    return linear(store(pointer(1, size, dtype), i, UOp(Op.ADD, product, const(1, dtype))))


DOUBLED = """\
kernel void k(global f32* b0, global f32* b1) {
  i32 gidx0 = get_global_id(0);
  if (gidx0 < 100) {
    f32 t0 = b0[gidx0];
    f32 t1 = t0 * 2.0f;
    f32 t2 = t1 + 1.0f;
    b1[gidx0] = t2;
  }
}"""


def test_one_statement_per_node() -> None:
    assert OPENCL.kernel(doubled(), "k") == DOUBLED


def test_more_work_items_than_elements_do_no_harm(opencl: OpenCLDevice) -> None:
    x = np.arange(100, dtype=np.float32)
    fenced = np.full(128, 7, np.float32)
    _, out = run(opencl, doubled(), x, fenced)
    np.testing.assert_array_equal(out[:100], x * 2 + 1)
    np.testing.assert_array_equal(out[100:], 7)


def test_two_axes(opencl: OpenCLDevice) -> None:
    i, j = item(3), item(70, "gidx1")
    at = UOp(Op.ADD, UOp(Op.MUL, i, index_const(70)), j)
    kernel = linear(store(pointer(0, 210, dtypes.int32), at, cast(at, dtypes.int32)))
    assert grid_of(kernel).groups == (3, 70)
    (out,) = run(opencl, kernel, np.zeros(210, np.int32))
    np.testing.assert_array_equal(out, np.arange(210))


def row_sums(rows: int, columns: int) -> UOp:
    """A register accumulator over a loop: b1[row] = sum of b0[row, :], from left to right."""
    i, j = item(rows), loop(columns)
    zero = index_const(0)
    register = UOp(Op.BUFFER, dims((1,)), arg=BufferArg(0, dtypes.float32, None, AddrSpace.REG))
    start = UOp(Op.AFTER, register, store(register, zero, const(0, dtypes.float32)), j)
    at = UOp(Op.ADD, UOp(Op.MUL, i, index_const(columns)), j)
    element = load(pointer(0, rows * columns, dtypes.float32), at)
    step = store(start, zero, UOp(Op.ADD, load(start, zero), element))
    done = UOp(Op.AFTER, register, UOp(Op.END, step, j))
    return linear(store(pointer(1, rows, dtypes.float32), i, load(done, zero)))


def test_a_loop_with_a_register(opencl: OpenCLDevice) -> None:
    x = np.random.default_rng(0).normal(size=(5, 33)).astype(np.float32)
    _, out = run(opencl, row_sums(5, 33), x, np.zeros(5, np.float32))
    np.testing.assert_array_equal(out, np.add.accumulate(x, axis=1)[:, -1])


def test_an_empty_loop_and_an_empty_launch_do_nothing(opencl: OpenCLDevice) -> None:
    _, out = run(opencl, row_sums(5, 0), np.zeros(0, np.float32), np.ones(5, np.float32))
    np.testing.assert_array_equal(out, 0)
    _, out = run(opencl, doubled(0), np.zeros(0, np.float32), np.ones(4, np.float32))
    np.testing.assert_array_equal(out, 1)


def shifted_copy(size: int, by: int) -> UOp:
    """b1[i] = b0[i + by] or -1 where that is outside, for even i only."""
    i = item(size)
    far = UOp(Op.ADD, i, index_const(by))
    inside = UOp(Op.CMPLT, far, index_const(size))
    value = load(pointer(0, size, dtypes.int32), far, const(-1, dtypes.int32), inside)
    even = UOp(Op.CMPNE, UOp(Op.MOD, i, index_const(2)), index_const(1))
    return linear(store(pointer(1, size, dtypes.int32), i, value, even))


def test_a_false_gate_touches_no_memory(opencl: OpenCLDevice) -> None:
    x = np.arange(64, dtype=np.int32)
    far = 1 << 40
    _, near = run(opencl, shifted_copy(64, 10), x, np.full(64, 7, np.int32))
    expected = np.where(x % 2 == 0, np.where(x < 54, x + 10, -1), 7)
    np.testing.assert_array_equal(near, expected)
    _, none = run(opencl, shifted_copy(64, far), x, np.full(64, 7, np.int32))
    np.testing.assert_array_equal(none, np.where(x % 2 == 0, -1, 7))


def test_a_bool_read_from_any_byte_is_0_or_1(opencl: OpenCLDevice) -> None:
    i = item(4)
    gate = const(True, dtypes.bool)
    a, b = pointer(0, 4, dtypes.bool), pointer(1, 4, dtypes.bool)
    for read in (load(a, i), load(a, i, const(False, dtypes.bool), gate)):
        kernel = linear(store(b, i, read))
        _, out = run(opencl, kernel, np.array([0, 1, 2, 255], np.uint8), np.zeros(4, np.uint8))
        np.testing.assert_array_equal(out, [0, 1, 1, 1])


def test_narrow_integers_are_narrow_at_every_node(opencl: OpenCLDevice) -> None:
    i, u8 = item(1), dtypes.uint8
    total = UOp(Op.ADD, load(pointer(0, 1, u8), i), const(100, u8))
    less = UOp(Op.CMPLT, total, const(100, u8))
    kernel = linear(store(pointer(1, 1, dtypes.bool), i, less))
    _, out = run(opencl, kernel, np.array([200], np.uint8), np.zeros(1, np.uint8))
    assert out[0] == 1


CONSTANTS: list[tuple[DType, Number | str]] = [
    (dtypes.float32, -0.0),
    (dtypes.float32, float("inf")),
    (dtypes.float64, 1e-310),
    (dtypes.float64, float("nan")),
    (dtypes.float16, -1.5),
    (dtypes.fp8e4m3, 448),
    (dtypes.bool, True),
    *((d, v) for d in (dtypes.int8, dtypes.int32, dtypes.int64) for v in (d.min, d.max, -1)),
    (dtypes.uint64, dtypes.uint64.max),
    (dtypes.uint32, dtypes.uint32.max),
]


@pytest.mark.parametrize(("dtype", "value"), CONSTANTS, ids=str)
def test_constants_are_their_bits(opencl: OpenCLDevice, dtype: DType, value: Number) -> None:
    kernel = linear(store(pointer(0, 1, dtype), index_const(0), const(value, dtype)))
    (out,) = run(opencl, kernel, np.zeros(dtype.itemsize, np.uint8))
    assert int.from_bytes(out.tobytes(), "little") == dtype.encode(value)


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [(dtypes.float32, 0xFFA00001), (dtypes.float64, 0x7FF0000000000001), (dtypes.float16, 0x7C01)],
    ids=str,
)
def test_a_nan_keeps_its_payload(opencl: OpenCLDevice, dtype: DType, bits: int) -> None:
    """Through a literal, a load, a WHERE and a store."""
    i, literal = item(8), UOp(Op.CONST, arg=ConstArg(bits, dtype))
    gate = load(pointer(0, 8, dtypes.bool), i)
    value = UOp(Op.WHERE, gate, load(pointer(1, 8, dtype), i), literal)
    kernel = linear(store(pointer(2, 8, dtype), i, value))
    raw = np.full(8, bits, f"u{dtype.itemsize}")
    gates = np.array([0, 1] * 4, np.uint8)
    _, _, out = run(opencl, kernel, gates, raw, np.zeros_like(raw))
    np.testing.assert_array_equal(out, raw)


def test_many_kernels_in_one_agree_with_each_alone(opencl: OpenCLDevice) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=100).astype(np.float32)
    half = rng.integers(0, 2**14, 64, np.uint16)
    i = item(64)
    wide = cast(load(pointer(0, 64, dtypes.float16), i), dtypes.float32)
    sine = cast(UOp(Op.SIN, wide), dtypes.float16)
    kernels = [
        (doubled(), [x, np.zeros_like(x)]),
        (row_sums(4, 25), [x, np.zeros(4, np.float32)]),
        (linear(store(pointer(1, 64, dtypes.float16), i, sine)), [half, np.zeros_like(half)]),
        (shifted_copy(64, 9), [np.arange(64, dtype=np.int32), np.zeros(64, np.int32)]),
    ]
    # More than one function has.
    kernels *= PART // len(kernels) + 1
    arena, placed, places = np.zeros(1024 * len(kernels), np.uint8), [], []
    for number, (kernel, buffers) in enumerate(kernels):
        offsets = (number * 1024, number * 1024 + 512)
        placed.append(BundledKernel(kernel, dict(enumerate(offsets))))
        for at, contents in zip(offsets, buffers, strict=True):
            arena[at : at + contents.nbytes] = contents.view(np.uint8)
            places.append((at, contents))
    built = opencl.build(render_bundle(placed, "all_of_them", OPENCL.dialect))
    count = len(kernels) // 2
    waves = [Launch("all_of_them", (0,), (count,), (1,), (first,)) for first in (0, count)]
    (together,) = opencl.run(built, waves, [arena])
    alone = [out for kernel, buffers in kernels for out in run(opencl, kernel, *buffers)]
    for (at, contents), out in zip(places, alone, strict=True):
        got = together[at : at + contents.nbytes].view(contents.dtype)
        np.testing.assert_array_equal(got, out)


def test_a_source_has_only_the_helpers_it_uses() -> None:
    kernel = linear(
        store(
            pointer(1, 1, dtypes.bfloat16),
            index_const(0),
            cast(load(pointer(0, 1, dtypes.int64), index_const(0)), dtypes.bfloat16),
        )
    )
    source = OPENCL.source([OPENCL.kernel(kernel, "k")])
    helpers = [line.split("(")[0] for line in source.splitlines() if line.startswith("FN ")]
    assert helpers == [
        "FN f32 f64_to_odd",
        "FN f32 u64_to_odd",
        "FN f32 i64_to_odd",
        "FN u16 f32_to_bfloat16",
    ]
    assert "FN" not in OPENCL.source([OPENCL.kernel(doubled(), "k")])


@pytest.mark.cuda
def test_the_same_kernels_compile_for_cuda() -> None:
    kernels = [doubled(), row_sums(3, 4), shifted_copy(8, 1)]
    texts = [CUDA.kernel(kernel, f"k{n}") for n, kernel in enumerate(kernels)]
    nvrtc_compile(CUDA.source(texts))
    nvrtc_compile(
        render_bundle(
            [BundledKernel(kernel, {0: 0, 1: 64}) for kernel in kernels], "k", CUDA.dialect
        )
    )


def test_the_stage_makes_programs() -> None:
    kernels = [doubled(), shifted_copy(8, 1)]
    programs = render(UOp(Op.GROUP, *kernels), OPENCL).src
    texts = []
    for kernel, program in zip(kernels, programs, strict=True):
        assert (program.op, program.src[0]) == (Op.PROGRAM, kernel)
        assert isinstance(program.src[1].arg, SourceArg)
        texts.append(program.src[1].arg.text)
    # Each text is a whole source: the header, and its own kernel alone.
    for number, text in enumerate(texts):
        assert text.startswith(OPENCL.dialect.header)
        assert re.findall(r"kernel void (\w+)\(", text) == [f"kernel_{number}"]
    assert DOUBLED.replace(" k(", " kernel_0(") in texts[0]
    assert [u.arg.slot for u in params(kernels[0]) if isinstance(u.arg, ParamArg)] == [0, 1]


def test_a_value_used_outside_its_loop_is_refused() -> None:
    j = loop(4)
    value = load(pointer(0, 4, dtypes.int32), j)
    end = UOp(Op.END, store(pointer(1, 4, dtypes.int32), j, value), j)
    late = store(pointer(1, 4, dtypes.int32), index_const(0), value)
    with pytest.raises(PassError, match="outside its loop"):
        OPENCL.kernel(linear(end, late), "k")


def test_crossing_loops_are_refused() -> None:
    outer, inner = loop(4, 0), loop(4, 1)
    first = store(pointer(0, 4, dtypes.int32), outer, const(1, dtypes.int32))
    second = store(pointer(0, 4, dtypes.int32), inner, const(2, dtypes.int32))
    crossing = UOp(Op.LINEAR, outer, inner, UOp(Op.END, first, outer), UOp(Op.END, second, inner))
    with pytest.raises(PassError):
        OPENCL.kernel(crossing, "k")


def test_what_a_kernel_cannot_have_is_named() -> None:
    i = item(4, "idx0")
    with pytest.raises(UnsupportedError, match="idx0"):
        OPENCL.kernel(linear(store(pointer(0, 4, dtypes.index), i, i)), "k")
    value = UOp(Op.DETACH, pointer(0, 4, dtypes.int32))
    with pytest.raises(UnsupportedError, match="DETACH"):
        OPENCL.kernel(UOp(Op.LINEAR, value), "k")
