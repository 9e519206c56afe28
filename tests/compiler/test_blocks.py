"""rangeify: long folds are computed in blocks, and scans are told from squares that are near."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from graphs import SLOW, Draw, Inputs, agree, contents, demanded
from hypothesis import event, given
from hypothesis import strategies as st

from uop.compiler.build import identity
from uop.compiler.pipeline import compile
from uop.compiler.runtime.opencl import OpenCLDevice
from uop.compiler.stages.rangeify import blocks
from uop.compiler.timing import cost_of
from uop.spec.args import PadArg, PadFill
from uop.spec.dtype import DTYPES, Kind, dtypes
from uop.spec.frontend.compositions import prefix_sum
from uop.spec.frontend.tensor import Tensor
from uop.spec.graph import calls
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, param

FOLDS = (Op.ADD, Op.MUL, Op.MAX, Op.MIN)
NUMBERS = [d for d in DTYPES.values() if d.kind not in (Kind.VOID, Kind.INDEX)]


def windows(row: UOp, before: int, fill: PadFill = PadFill.INVALID) -> Tensor:
    """The windows of rows among n - 1 added elements: in the last two axes, each one later."""
    *rest, n = row.shape
    zeros = [0] * len(rest)
    wide = 2 * n - 1
    x = Tensor(UOp(Op.PAD, row, dims((*zeros, before)), dims((*rest, wide)), arg=PadArg(fill)))
    x = x.reshape(*rest, 1, wide).expand(*rest, n + 1, wide).reshape(*rest, (n + 1) * wide)
    x = x.shrink_to(*rest, 2 * n * n).reshape(*rest, n, 2 * n)
    return x.shrink_to(*rest, n, n)


def halves(n: int, before: int) -> Tensor:
    """A square of bools: true where i + j is in n places from `before` on."""
    true = UOp(Op.EXPAND, UOp(Op.RESHAPE, const(True, dtypes.bool), dims((1,))), dims((n,)))
    return windows(true, before, PadFill.ZERO)


def of_windows(x: UOp, op: Op, before: int) -> Tensor:
    return windows(x, before).reduce(op, len(x.shape))


def of_equal_rows(x: UOp, op: Op, before: int) -> Tensor:
    """A fold of a row, or of its reverse, in one half of a square."""
    *rest, n = x.shape
    nothing = Tensor(identity(op, x.dtype))
    square = Tensor(x).reshape(*rest, 1, n).expand(*rest, n, n)
    return halves(n, before).flip(1).where(square, nothing).reduce(op, len(x.shape))


@st.composite
def scans(draw: Draw) -> tuple[UOp, Inputs, bool]:
    """A program, its inputs, and whether it is a scan."""
    op, dtype = draw(st.sampled_from(FOLDS)), draw(st.sampled_from(NUMBERS))
    n, rest = draw(st.integers(9, 30)), draw(st.sampled_from([(), (2,), (2, 3)]))
    x = param(0, (*rest, n), dtype)
    before = draw(st.sampled_from([0, n - 1, n - 1, 1, n - 2]))
    make = draw(st.sampled_from([of_windows, of_equal_rows]))
    source = Tensor(x)
    if draw(st.booleans()):
        source = source.flip(len(rest))
    result = make(source.uop, op, before)
    if rest and draw(st.booleans()):
        result = result.permute(*reversed(range(len(result.shape))))
    inputs = {0: contents(dtype, x.shape, draw(st.integers(0, 99)))}
    return result.uop, inputs, before in (0, n - 1)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 4)
    monkeypatch.setattr(blocks, "LONG", 8)
    monkeypatch.setattr(blocks, "LARGE", 60)
    monkeypatch.setattr(blocks, "FEW", 4)
    monkeypatch.setattr(blocks, "PARTS", 16)


def ranged(root: UOp, rule: str) -> tuple[UOp, int]:
    """What rangeify makes of a program, and how often a rule fired."""
    fired: list[str] = []
    compiled = compile(root, optimizations=(), observe=lambda _, name, *sides: fired.append(name))
    return compiled.stages["rangeify"], fired.count(rule)


@pytest.mark.slow
def test_scans_in_blocks_do_what_the_graph_says(small_blocks: None) -> None:
    """Of all folds and dtypes, in both directions, along any axis; near scans too."""

    @SLOW
    @given(scans())
    def check(drawn: tuple[UOp, Inputs, bool]) -> None:
        root, inputs, is_scan = drawn
        demanded(root, inputs)
        program, fired = ranged(root, "scan_in_blocks")
        assert (fired > 0) == is_scan
        agree(root, inputs, program)

    check()


@pytest.mark.slow
@pytest.mark.parametrize("n", [129, 1000, 1024, 5000])
def test_a_long_prefix_sum_is_right_and_its_work_grows_by_little(
    n: int, run_on_opencl: OpenCLDevice
) -> None:
    data = np.random.default_rng(n).integers(-9, 9, n).astype(np.int32)
    root = prefix_sum(Tensor(param(0, (n,), dtypes.int32))).uop
    compiled = compile(root)
    np.testing.assert_array_equal(compiled.run({0: data}), np.cumsum(data))
    work = sum(cost_of(step).flops for step in compiled.executable.steps)
    assert work < blocks.LONG // 2 * n


def test_a_scan_of_what_is_computed_scans_it_once() -> None:
    """The elements of a scan of another scan are no views of an input."""
    x = Tensor(param(0, (300,), dtypes.int32))
    _, fired = ranged(prefix_sum(prefix_sum(x * x)).uop, "scan_in_blocks")
    assert fired == 2


def test_a_short_scan_is_one_kernel() -> None:
    program, fired = ranged(
        prefix_sum(Tensor(param(0, (blocks.LONG,), dtypes.int32))).uop, "scan_in_blocks"
    )
    assert (fired, len(calls(program))) == (0, 1)


@st.composite
def large_folds(draw: Draw) -> tuple[UOp, Inputs]:
    """A fold of 60 elements and more along some axes to at most three."""
    op, dtype = draw(st.sampled_from(FOLDS)), draw(st.sampled_from(NUMBERS))
    kept = draw(st.sampled_from([1, 1, 2, 3]))
    folded = draw(st.sampled_from([(64,), (72,), (8, 9), (5, 3, 6), (2, 31)]))
    shape = list(folded)
    place = draw(st.integers(0, len(shape)))
    shape.insert(place, kept)
    x = param(0, tuple(shape), dtype)
    root = Tensor(x).reduce(op, [k for k in range(len(shape)) if k != place]).uop
    return root, {0: contents(dtype, x.shape, draw(st.integers(0, 99)))}


def test_large_folds_in_parts_do_what_the_graph_says(small_blocks: None) -> None:
    @SLOW
    @given(large_folds())
    def check(drawn: tuple[UOp, Inputs]) -> None:
        root, inputs = drawn
        demanded(root, inputs)
        program, fired = ranged(root, "fold_in_parts")
        event(f"{fired} firings")
        agree(root, inputs, program)

    check()


@pytest.mark.parametrize("shape", [(1 << 20,), (3, 1 << 18), (1 << 10, 1 << 9)])
def test_a_large_fold_is_two_kernels_of_which_the_first_is_parallel(shape: tuple[int, ...]) -> None:
    x = Tensor(param(0, shape, dtypes.int32))
    _, second = calls(ranged(x.reduce(Op.ADD).uop, "fold_in_parts")[0])
    assert blocks.PARTS // 2 <= prod(second.src[2].shape) <= blocks.PARTS


def test_a_fold_to_many_elements_is_one_kernel() -> None:
    root = Tensor(param(0, (blocks.FEW, 1 << 12), dtypes.int32)).reduce(Op.ADD, 1).uop
    program, fired = ranged(root, "fold_in_parts")
    assert (fired, len(calls(program))) == (0, 1)


def test_a_fold_along_no_axis_stays() -> None:
    root = Tensor(param(0, (1, 1 << 20), dtypes.int32)).reduce(Op.ADD, []).uop
    program, fired = ranged(root, "scan_in_blocks")
    assert (fired, len(calls(program))) == (0, 1)
