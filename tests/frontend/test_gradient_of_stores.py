"""Gradients through memory: what is stored has the gradient of what is read, the rest keeps its."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from uop.interpreter.evaluate import evaluate
from uop.spec.args import BufferArg, DTypeArg, FlipArg, PadArg, PermuteArg, ReduceArg
from uop.spec.dtype import dtypes
from uop.spec.errors import InvalidError
from uop.spec.frontend.gradient import backward
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, dims, index_const, param

F64 = dtypes.float64
BUFFER = UOp(Op.BUFFER, dims((3, 4)), arg=BufferArg(0, F64))
X = param(1, (2, 3), F64)
ROWS = param(2, (2,), dtypes.int64)
GATE = param(3, (2, 3), dtypes.bool)


def middle(location: UOp) -> UOp:
    return UOp(Op.SHRINK, location, dims((1, 0)), dims((2, 3)))


def cubes(value: UOp) -> UOp:
    """The sum of v_k^3, so that every element of the gradient tells which one it is."""
    cube = UOp(Op.MUL, value, UOp(Op.MUL, value, value))
    total = UOp(Op.REDUCE, cube, arg=ReduceArg(Op.ADD, tuple(range(len(value.shape)))))
    return UOp(Op.RESHAPE, total, dims(()))


def stored(*effects: UOp) -> UOp:
    return UOp(Op.AFTER, BUFFER, *effects)


def turned() -> UOp:
    shrunk = UOp(Op.SHRINK, BUFFER, dims((0, 1)), dims((3, 2)))
    target = UOp(
        Op.FLIP, UOp(Op.PERMUTE, shrunk, arg=PermuteArg((1, 0))), arg=FlipArg((True, False))
    )
    return stored(UOp(Op.STORE, target, X))


def reshaped() -> UOp:
    flat = UOp(Op.SHRINK, UOp(Op.RESHAPE, BUFFER, dims((12,))), dims((4,)), dims((6,)))
    return stored(UOp(Op.STORE, UOp(Op.RESHAPE, flat, dims((2, 3))), X))


def rows() -> UOp:
    picked = UOp(Op.INDEX, BUFFER, UOp(Op.CAST, ROWS, arg=DTypeArg(dtypes.index)))
    return stored(UOp(Op.STORE, UOp(Op.SHRINK, picked, dims((0, 1)), dims((2, 3))), X))


def twice() -> UOp:
    """The second STORE takes away some of the first, and reads what that left."""
    first = stored(UOp(Op.STORE, middle(BUFFER), X))
    again = UOp(Op.SHRINK, first, dims((0, 0)), dims((2, 3)))
    read = UOp(Op.LOAD, again)
    return UOp(Op.AFTER, first, UOp(Op.STORE, again, UOp(Op.MUL, read, X)))


def absent() -> UOp:
    padded = UOp(Op.PAD, UOp(Op.SHRINK, X, dims((0, 1)), dims((2, 2))), dims((0, 1)), dims((2, 3)))
    return stored(UOp(Op.STORE, middle(BUFFER), padded))


PROGRAMS: dict[str, Callable[[], UOp]] = {
    "whole": lambda: UOp(Op.MUL, middle(stored(UOp(Op.STORE, middle(BUFFER), X))), X),
    "part": lambda: stored(UOp(Op.STORE, middle(BUFFER), X)),
    "gated": lambda: stored(UOp(Op.STORE, middle(BUFFER), X, GATE)),
    "permuted, flipped": turned,
    "reshaped": reshaped,
    "rows by number": rows,
    "one element": lambda: stored(
        UOp(
            Op.STORE,
            UOp(Op.INDEX, BUFFER, index_const(1), index_const(2)),
            UOp(Op.INDEX, X, index_const(0), index_const(1)),
        )
    ),
    "twice": twice,
    "absent": absent,
    "two parts": lambda: stored(
        UOp(Op.STORE, UOp(Op.SHRINK, BUFFER, dims((0, 0)), dims((2, 3))), X),
        UOp(
            Op.STORE,
            UOp(Op.SHRINK, BUFFER, dims((2, 1)), dims((1, 3))),
            UOp(Op.SHRINK, X, dims((1, 0)), dims((1, 3))),
        ),
    ),
}


def given() -> dict[int, np.ndarray]:
    random = np.random.default_rng(5)
    return {
        0: random.standard_normal((3, 4)),
        1: random.standard_normal((2, 3)),
        2: np.asarray([2, 0]),
        3: np.asarray([[True, False, True], [False, True, True]]),
    }


def needed(root: UOp, inputs: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
    slots = {u.arg.slot for u in root.toposort() if u.op in (Op.PARAM, Op.BUFFER)}
    return {k: v for k, v in inputs.items() if k in slots}


def value_of(root: UOp, inputs: dict[int, np.ndarray]) -> np.ndarray:
    found = evaluate(root, needed(root, inputs))
    assert isinstance(found, np.ndarray)
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_differences_are_the_gradient(name: str) -> None:
    """Of every element of the stored value and of the old contents, by central differences."""
    loss = cubes(PROGRAMS[name]())
    step, inputs = 2.0**-17, given()
    for target, slot in ((X, 1), (BUFFER, 0)):
        (g,) = backward(loss, [target])
        found = np.zeros(inputs[slot].shape) if g is None else value_of(g, inputs)
        for place in np.ndindex(found.shape):
            ends = []
            for sign in (1, -1):
                moved = {k: v.copy() for k, v in inputs.items()}
                moved[slot][place] += sign * step
                ends.append(float(value_of(loss, moved)))
            # Off by step^2 / 6 times a third derivative, and by rounding, which is less.
            expected = (ends[0] - ends[1]) / (2 * step)
            scale = 1 + abs(expected) + max(map(abs, ends))
            assert abs(found[place] - expected) <= 1e3 * step**2 * scale, (slot, place)


def test_old_contents_keep_their_gradient_outside_alone() -> None:
    after = stored(UOp(Op.STORE, middle(BUFFER), X))
    flat = UOp(Op.REDUCE, after, arg=ReduceArg(Op.ADD, (0, 1)))
    to_x, to_old = backward(UOp(Op.RESHAPE, flat, dims(())), [X, BUFFER])
    assert to_x is not None
    assert to_old is not None
    assert value_of(to_x, given()).tolist() == [[1.0] * 3] * 2
    expected = np.ones((3, 4))
    expected[1:, :3] = 0
    assert value_of(to_old, given()).tolist() == expected.tolist()


def test_what_memory_hides_has_no_gradient() -> None:
    wide = UOp(Op.EXPAND, UOp(Op.SHRINK, BUFFER, dims((0, 0)), dims((1, 3))), dims((2, 3)))
    added = UOp(
        Op.ATOMICADD, UOp(Op.INDEX, BUFFER, index_const(0)), UOp(Op.INDEX, BUFFER, index_const(1))
    )
    for effect, found in ((UOp(Op.STORE, wide, X), "EXPAND"), (added, "ATOMICADD")):
        with pytest.raises(InvalidError, match=rf"GRADIENT\.c2(.|\n)*{found}") as caught:
            backward(cubes(stored(effect)), [X, BUFFER])
        assert caught.value.label == "GRADIENT.c2"


def test_padding_a_location_may_be_stored_through() -> None:
    wide = UOp(Op.PAD, BUFFER, dims((0, 1)), dims((3, 6)), arg=PadArg())
    value = UOp(Op.PAD, X, dims((1, 2)), dims((3, 6)), arg=PadArg())
    (g,) = backward(cubes(stored(UOp(Op.STORE, wide, value))), [X])
    assert g is not None
    # Halves of small numbers: each product and sum is a float64, so that every order is exact.
    x = np.array([[1.5, -2.0, 0.5], [3.0, -0.5, 2.5]])
    found = value_of(g, given() | {1: x})
    assert found.tolist() == [[6.75, 12.0, 0.75], [27.0, 0.75, 18.75]]
