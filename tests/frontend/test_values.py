"""A Tensor is evaluated when its value is used, once, and what is built on it starts from there."""

from __future__ import annotations

import math
import operator
import pickle
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from uop import Op, Tensor, UOp, dtypes, evaluate, function, gradient, param, show_graphs
from uop import show_values as values_again
from uop.interpreter.frontend import NumpyEvaluator
from uop.interpreter.numeric.storage import Array
from uop.spec.errors import CaptureWarning, InvalidError
from uop.spec.frontend.evaluator import using

USES: dict[str, Callable[[Tensor], Any]] = {
    "eval": Tensor.eval, "realize": Tensor.realize, "repr": repr, "str": str, "bool": bool,
    "int": int, "float": float, "complex": complex, "index": operator.index,
    "tolist": Tensor.tolist, "item": Tensor.item, "numpy": Tensor.numpy, "array": np.asarray,
    "dlpack": np.from_dlpack, "in a list": lambda t: [1, 2, 3, 4, 5, 6, 7][t], "sqrt": math.sqrt,
    "as a size": lambda t: Tensor([0] * 6).reshape(t),
}  # fmt: skip


@pytest.fixture
def runs() -> Iterator[list[UOp]]:
    """The graphs that were evaluated, in order."""
    done: list[UOp] = []

    def noted(root: UOp, inputs: dict[int, Array]) -> object:
        done.append(root)
        return evaluate(root, inputs)

    with using(NumpyEvaluator(noted)):
        yield done


@pytest.mark.parametrize("use", USES)
def test_each_use_evaluates_once(use: str, runs: list[UOp]) -> None:
    t = Tensor([2]) * 3
    assert (t.shape, t.dtype, t.device, t.ndim, t.size, runs) == (
        (1,),
        dtypes.int32,
        None,
        1,
        1,
        [],
    )
    USES[use](t)
    assert runs == [t.uop]
    for again in USES.values():
        again(t)
    assert runs == [t.uop]


def test_what_is_built_afterwards_starts_from_the_value(runs: list[UOp]) -> None:
    t = Tensor([1, 2, 3]) * 2
    before = t + 1
    assert t.eval() is t
    after = t + 1
    assert [u.op for u in after.uop.toposort()].count(Op.MUL) == 0
    assert (before.tolist(), after.tolist()) == ([3, 5, 7], [3, 5, 7])
    assert runs == [t.uop, before.uop, after.uop]
    assert before.uop.src[0] is t.uop


def test_looking_changes_no_graph() -> None:
    """The node, the drawing and the gradients stay what they were."""
    x = Tensor([1.0, 2.0])
    y = x * x
    graph, drawn = y.uop, y._repr_html_()
    print(x, y)
    assert (y.uop, y._repr_html_()) == (graph, drawn)
    z = (y * 3).eval()
    loss = (z * z).sum()
    repr(loss)
    slopes = gradient(loss, [x, y, z])
    assert [None if s is None else s.tolist() for s in slopes] == [
        [36.0, 288.0],
        [18.0, 72.0],
        [6.0, 24.0],
    ]


def test_gradients_use_values_that_are_known() -> None:
    x = Tensor([1.0, 2.0])
    y = x.sqrt().eval()
    (slope,) = gradient((y * y * y).sum(), [x])
    assert slope is not None
    assert Op.SQRT not in {u.op for u in slope.uop.toposort()}
    assert slope.tolist()[0] == 1.5


def test_realize_keeps_no_graph() -> None:
    x = Tensor([1.0, 2.0])
    y = (x * x).realize()
    assert y.uop.op is Op.BUFFER
    assert gradient((y * 2).sum(), [x]) == (None,)


def test_storing_in_what_was_computed_stays_an_error() -> None:
    t = (Tensor([1, 2]) + 1).eval()
    with pytest.raises(InvalidError, match=r"STORE\.c4"):
        t.assign(3)


def test_the_repr_has_value_dtype_shape_and_device() -> None:
    wanted = """\
Tensor([[1, 2],
        [3, 4]], dtype=int32, shape=(2, 2), device=None)"""
    assert repr(Tensor([[0, 1], [2, 3]]) + 1) == wanted
    assert str(Tensor(0.5, device="GPU")) == "Tensor(0.5, dtype=float32, shape=(), device=GPU)"
    assert repr(Tensor([[], []])) == "Tensor([], dtype=float32, shape=(2, 0), device=None)"
    long = repr(Tensor(np.arange(3000, dtype=np.int16)))
    assert long.startswith("Tensor([   0,    1,    2, ..., 2997, 2998, 2999], dtype=int16")
    assert repr(Tensor([True, False], device=("A", "B"))) == (
        "Tensor([ True, False], dtype=bool, shape=(2,), device=('A', 'B'))"
    )


def test_the_repr_of_graphs_evaluates_nothing(runs: list[UOp]) -> None:
    t = Tensor([1, 2]) + 1
    show_graphs()
    try:
        assert repr(t) == "<Tensor int32[2] : ADD>"
        assert runs == []
    finally:
        values_again()
    assert repr(t).startswith("Tensor([2, 3]")


def test_what_has_no_value_has_the_repr_of_its_graph() -> None:
    t = Tensor(param(0, (2, 3), dtypes.int8, "GPU"))
    assert repr(t) == "<Tensor int8[2, 3] @GPU : PARAM>"
    with using(None):
        assert repr(Tensor([1]) + 1) == "<Tensor int32[1] : ADD>"


def test_an_effect_has_no_value() -> None:
    t = Tensor([1])
    store = Tensor(UOp(Op.STORE, t.uop, (t + 1).uop))
    assert repr(store) == "<Tensor void[] : STORE>"
    with pytest.raises(InvalidError, match=r"TENSOR\.c11"):
        store.eval()


def test_numbers_are_pythons() -> None:
    assert (int(Tensor(-2.5)), float(Tensor([[3]])), complex(Tensor(0.5))) == (-2, 3.0, 0.5 + 0j)
    assert [bool(Tensor(v)) for v in (0, 2, 0.0, -0.0, math.nan)] == [
        False,
        True,
        False,
        False,
        True,
    ]
    assert operator.index(Tensor([7]) + 1) == 8
    assert "x" if Tensor([3]) < 4 else "y" == "x"


def test_arrays_cannot_be_written_to() -> None:
    for t in (Tensor([1, 2]), Tensor(np.array([1, 2])), Tensor([1, 2]) * 1):
        for array in (t.numpy(), np.asarray(t)):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 9
        copy = np.array(t)
        copy[0] = 9
        assert t.tolist() == [1, 2]


def test_a_placeholder_has_no_value() -> None:
    @function
    def branches(x: Tensor) -> Tensor:
        return x if x.sum() > 0 else -x  # mark

    with pytest.raises(InvalidError, match=r"TENSOR\.c6") as caught:
        branches(Tensor([1, 2]))
    assert "if x.sum() > 0" in str(caught.value)
    assert "# mark" in str(caught.value)

    @function
    def prints(x: Tensor) -> Tensor:
        shown.append(repr(x * 2))
        return x * 2

    shown: list[str] = []
    assert prints(Tensor([1, 2])).tolist() == [2, 4]
    assert shown == ["<Tensor int32[2] : MUL>"]


def test_evaluation_while_capturing_is_warned_of_once_a_line() -> None:
    other = [Tensor([k]) * 2 for k in range(4)]

    @function
    def scaled(x: Tensor, k: int) -> Tensor:
        return x * other[k].item()  # mark

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        assert [scaled(Tensor([3]), k).item() for k in range(3)] == [0, 6, 12]
    assert [w.category for w in seen] == [CaptureWarning]
    with open(seen[0].filename) as file:
        assert "# mark" in file.readlines()[seen[0].lineno - 1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Outside, and of a value that is known, there is nothing to warn of.
        other[3].eval()
        scaled(Tensor([3]), 3)


def test_an_error_can_be_pickled() -> None:
    with pytest.raises(InvalidError) as caught:
        Tensor([1, 2]) + Tensor([1, 2, 3])
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
