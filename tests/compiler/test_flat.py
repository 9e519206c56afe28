"""Kernels over memory of several axes: the stages see flat memory and row-major addresses."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from kernels import int32, loop

from uop.compiler.pipeline import compile, lower
from uop.compiler.stages.entry.scalars import flatten_memory
from uop.compiler.stages.linearize import instructions
from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import Array
from uop.spec.args import AddrSpace, AxisType, BufferArg, ParamArg
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.graph import kernels, with_kernels
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, index_const

I32 = dtypes.int32
SHAPE = (2, 3, 4)


def memory(slot: int, *shape: int | UOp) -> UOp:
    return UOp(Op.PARAM, dims(shape), arg=ParamArg(slot, I32, None, AddrSpace.GLOBAL))


def at(place: UOp, *indices: UOp | int) -> UOp:
    return UOp(Op.INDEX, place, *(index_const(i) if isinstance(i, int) else i for i in indices))


def calling(body: UOp, *shapes: tuple[int, ...]) -> UOp:
    buffers = (UOp(Op.BUFFER, dims(s), arg=BufferArg(k, I32)) for k, s in enumerate(shapes))
    return UOp(Op.SINK, UOp(Op.CALL, body, *buffers))


def ended(effect: UOp, *ranges: UOp) -> UOp:
    for r in reversed(ranges):
        effect = UOp(Op.END, effect, r)
    return UOp(Op.SINK, effect)


def turned(kind: AxisType) -> UOp:
    """c[k, i, j] = a[i, j, k], a 3-cycle of axes."""
    i, j, k = (loop(axis, n, kind) for axis, n in enumerate(SHAPE))
    value = UOp(Op.LOAD, at(memory(1, *SHAPE), i, j, k))
    return ended(UOp(Op.STORE, at(memory(0, 4, 2, 3), k, i, j), value), k, i, j)


def listed(body: UOp) -> UOp:
    return UOp(Op.LINEAR, *instructions(body))


def rows() -> UOp:
    """Rows, indexed by the first axis alone, change places."""
    i = loop(0, 2, AxisType.LOOP)
    other = UOp(Op.SUB, index_const(1), i)
    value = UOp(Op.LOAD, at(memory(1, 2, 12), other))
    return ended(UOp(Op.STORE, at(memory(0, 2, 12), i), value), i)


def whole() -> UOp:
    """A vector that is read and stored as it is."""
    value = UOp(Op.LOAD, memory(1, 24))
    return UOp(Op.SINK, UOp(Op.STORE, memory(0, 24), UOp(Op.NEG, value)))


def planes(kind: AxisType) -> UOp:
    """Planes, which a place of one index names, change places; a value of two axes is squared."""
    i = loop(0, 2, kind)
    value = UOp(Op.LOAD, at(memory(1, *SHAPE), UOp(Op.SUB, index_const(1), i)))
    return ended(UOp(Op.STORE, at(memory(0, *SHAPE), i), UOp(Op.MUL, value, value)), i)


def picked() -> UOp:
    """Elements of a value of several axes that is read whole."""
    i = loop(0, 4, AxisType.LOOP)
    value = UOp(Op.LOAD, memory(1, *SHAPE))
    element = at(value, 1, 2, UOp(Op.SUB, index_const(3), i))
    return ended(UOp(Op.STORE, at(memory(0, 4), i), element), i)


def filled() -> UOp:
    """One element in all places."""
    wide = UOp(Op.EXPAND, UOp(Op.RESHAPE, const(7, I32), dims((1, 1, 1))), dims(SHAPE))
    value = UOp(Op.ADD, wide, UOp(Op.LOAD, memory(1, *SHAPE)))
    return UOp(Op.SINK, UOp(Op.STORE, memory(0, *SHAPE), value))


def written(root: UOp, compiled: bool) -> Array:
    data = {1: np.arange(24, dtype=np.int32).reshape(root.src[0].src[2].shape)}
    found = compile(root).run(data) if compiled else evaluate(root, data)
    assert isinstance(found, dict)
    return found[0]


@pytest.mark.usefixtures("opencl")
@pytest.mark.parametrize(
    ("body", "shapes"),
    [
        (turned(AxisType.GLOBAL), ((4, 2, 3), SHAPE)),
        (turned(AxisType.LOOP), ((4, 2, 3), SHAPE)),
        (turned(AxisType.UPCAST), ((4, 2, 3), SHAPE)),
        (listed(turned(AxisType.LOOP)), ((4, 2, 3), SHAPE)),
        (rows(), ((2, 12), (2, 12))),
        (listed(rows()), ((24,), (2, 12))),
        (whole(), ((24,), SHAPE)),
        (planes(AxisType.GLOBAL), (SHAPE, SHAPE)),
        (listed(planes(AxisType.LOOP)), (SHAPE, SHAPE)),
        (picked(), ((4,), SHAPE)),
        (filled(), (SHAPE, (24,))),
    ],
    ids=[
        "items",
        "loops",
        "copies",
        "list",
        "rows",
        "list of rows",
        "whole",
        "planes",
        "list of planes",
        "picked",
        "filled",
    ],
)
def test_memory_of_several_axes_is_row_major(
    body: UOp, shapes: tuple[tuple[int, ...], ...]
) -> None:
    root = calling(body, *shapes)
    np.testing.assert_array_equal(written(root, compiled=True), written(root, compiled=False))


def test_a_three_cycle_of_axes_is_no_other_one() -> None:
    data = np.arange(24, dtype=np.int32).reshape(SHAPE)
    root = calling(turned(AxisType.GLOBAL), (4, 2, 3), SHAPE)
    for compiled in (False, True):
        np.testing.assert_array_equal(written(root, compiled), data.transpose(2, 0, 1))


def test_addresses_are_those_of_numpy() -> None:
    """The position of every index, folded by the interpreter on constants."""
    for index in product(*map(range, SHAPE)):
        effect = UOp(Op.STORE, at(memory(0, *SHAPE), *index), const(1, I32))
        (body,) = kernels(with_kernels(calling(UOp(Op.SINK, effect), SHAPE), flatten_memory))
        (place,) = (u for u in body.toposort() if u.op is Op.INDEX)
        assert place.src[0].shape == (24,)
        assert evaluate(place.src[1], {}) == np.ravel_multi_index(index, SHAPE)


def test_flat_kernels_stay_as_they_are() -> None:
    i = loop(0, 4, AxisType.GLOBAL)
    root = calling(ended(UOp(Op.STORE, at(memory(0, 4), i), int32(i)), i), (4,))
    assert with_kernels(root, flatten_memory) is root


def test_sizes_may_be_variables() -> None:
    """The rows of a kernel are as long as its argument says."""
    n = UOp(Op.PARAM, dims(()), arg=ParamArg(1, dtypes.index, min=1, max=6))
    i, k = loop(0, 2, AxisType.LOOP), loop(1, n, AxisType.LOOP)
    body = ended(UOp(Op.STORE, at(memory(0, 2, n), i, k), int32(UOp(Op.ADD, i, k))), i, k)
    root = UOp(Op.SINK, UOp(Op.CALL, body, memory(0, 2, n), n))
    flat = with_kernels(root, flatten_memory)
    (place,) = (u for u in flat.toposort() if u.op is Op.INDEX)
    assert len(place.src) == 2
    assert len(place.src[0].shape) == 1


def test_values_of_several_axes_that_meet_others_are_refused() -> None:
    row = UOp(Op.LOAD, at(memory(1, 2, 3), 0))
    value = UOp(Op.ADD, UOp(Op.LOAD, memory(1, 2, 3)), row)
    root = calling(UOp(Op.SINK, UOp(Op.STORE, memory(0, 2, 3), value)), (2, 3), (2, 3))
    with pytest.raises(UnsupportedError, match=r"ADD of shape \[2, 3\]"):
        lower(root, "select")
