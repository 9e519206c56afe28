"""Tensors build what numpy would compute, and evaluate only where somebody can."""

from __future__ import annotations

import gc
import operator
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uop import Op, Tensor, UOp, const, dtypes, param
from uop.interpreter.evaluate import evaluate
from uop.interpreter.frontend import NumpyEvaluator
from uop.interpreter.numeric.storage import STORAGE, Array
from uop.spec.args import PadFill
from uop.spec.dtype import DTYPES, DType, Kind
from uop.spec.errors import InvalidError, UnsupportedError
from uop.spec.frontend.evaluator import using
from uop.spec.frontend.values import contents
from uop.spec.registry import DECLARATIONS

A = [[7, -2, 5], [0, 3, -8]]
B = [2, -3, 4]

BINARY: list[Callable[[Any, Any], Any]] = [
    *(operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod),
    *(operator.and_, operator.or_, operator.xor),
    *(operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne),
]
KEYS = [
    0,
    -1,
    (1, 2),
    (slice(None), 1),
    (..., 2),
    (None, 1, ..., None),
    (slice(None, None, -1), slice(0, 3, 2)),
    (slice(1, 1),),
    (0, slice(None, 0, -2), slice(3, None)),
    (slice(-1, None), slice(1, 9), slice(None, None, 3)),
    ([1, 0, 1],),
    (slice(None), slice(None), [3, 0]),
]
VALUE_DTYPES = [d for d in DTYPES.values() if d.kind not in (Kind.VOID, Kind.INDEX)]


@pytest.mark.parametrize("apply", BINARY, ids=lambda f: f.__name__)
def test_operators_on_integers_are_pythons(apply: Callable[[Any, Any], Any]) -> None:
    rows = [[apply(a, b) for a, b in zip(row, B, strict=True)] for row in A]
    assert apply(Tensor(A), Tensor(B)).tolist() == rows
    assert apply(Tensor(A), 3).tolist() == [[apply(a, 3) for a in row] for row in A]
    assert apply(7, Tensor(B)).tolist() == [apply(7, b) for b in B]


def test_operators_on_floats_are_pythons() -> None:
    a, b = Tensor([1.5, -2.0], dtypes.float64), Tensor([0.25, 4.0], dtypes.float64)
    assert (a / b).tolist() == [6.0, -0.5]
    assert (1 / b).tolist() == [4.0, 0.25]
    assert (2.0**b).tolist() == [2.0**0.25, 16.0]
    assert (a**2).tolist() == [2.25, 4.0]
    assert (-a).tolist() == [-1.5, 2.0]
    assert abs(a).tolist() == [1.5, 2.0]
    assert a.minimum(b).tolist() == [0.25, -2.0]
    assert a.maximum(1.0).tolist() == [1.5, 1.0]
    assert a.mulacc(b, 1.0).tolist() == [1.375, -7.0]
    assert a.mean().item() == -0.25
    assert Tensor([[1.0, 3.0, 8.0], [0.0, 1.0, -4.0]]).mean(1).tolist() == [4.0, -1.0]
    assert a.trunc().tolist() == [1.0, -2.0]
    assert (b.sqrt().tolist(), b.recip().tolist()) == ([0.5, 2.0], [4.0, 0.25])
    assert b.log2().tolist() == [-2.0, 2.0]


def test_operators_on_bits() -> None:
    a = Tensor([1, 250], dtypes.uint8)
    assert (~a).tolist() == [254, 5]
    assert (a << 3).tolist() == [8, 208]
    assert (a >> 1).tolist() == [0, 125]
    assert (1 << Tensor([3, 7], dtypes.uint8)).tolist() == [8, 128]
    assert (a + 10).tolist() == [11, 4]
    assert a.minimum(100).tolist() == [1, 100]
    assert Tensor([-128, 5], dtypes.int8).minimum(0).tolist() == [-128, 0]
    assert (~Tensor([True, False])).tolist() == [False, True]


def test_where_takes_tensors_and_numbers() -> None:
    p, x = Tensor([True, False]), Tensor([1.5, 2.5])
    assert p.where(x, 0).tolist() == [1.5, 0.0]
    assert p.where(0, x).tolist() == [0.0, 2.5]
    assert p.where(1, 2).tolist() == [1, 2]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_indexing_is_numpys(key: Any) -> None:
    data = np.arange(24).reshape(2, 3, 4)
    found = Tensor(data)[key].numpy()
    np.testing.assert_array_equal(found, data[key])
    assert found.shape == data[key].shape


def test_a_tensor_as_index() -> None:
    t = Tensor([[1, 2], [3, 4], [5, 6]])
    assert t[Tensor([2, 0])].tolist() == [[5, 6], [1, 2]]
    assert t[Tensor(1)].tolist() == [3, 4]
    assert [row.tolist() for row in t] == [[1, 2], [3, 4], [5, 6]]
    assert len(t) == 3


def test_views_are_numpys() -> None:
    data = np.arange(24).reshape(2, 3, 4)
    t = Tensor(data)
    same: list[tuple[Tensor, npt.NDArray[Any]]] = [
        (t.reshape(4, -1), data.reshape(4, 6)),
        (t.reshape((24,)), data.reshape(24)),
        (t.reshape(np.int64(4), np.int8(6)), data.reshape(4, 6)),
        (t.permute(2, 0, 1), data.transpose(2, 0, 1)),
        (t.transpose(0, -1), data.transpose(2, 1, 0)),
        (t.T, data.T),
        (t.flip(), data[::-1, ::-1, ::-1]),
        (t.flip((0, -1)), data[::-1, :, ::-1]),
        (t.pad((1, 0), (0, 0), (2, 3), fill=PadFill.ZERO), np.pad(data, ((1, 0), (0, 0), (2, 3)))),
        (t.shrink((0, 1), (1, 3), (2, 2)), data[0:1, 1:3, 2:2]),
        (t.shrink_to(1, 2, 3), data[:1, :2, :3]),
        (t[0, :1].expand(5, -1, -1), np.broadcast_to(data[0, :1], (5, 1, 4))),
        (t.sum(), np.asarray(data.sum())),
        (t.sum(1), data.sum(1)),
        (t.sum((0, -1)), data.sum((0, 2))),
        (t.max(-1), data.max(-1)),
        (t[:, 0, :2].prod(0), data[:, 0, :2].prod(0)),
        (t.reduce(Op.ADD, 1), data.sum(1, keepdims=True)),
        (Tensor.stack(t, t + 1), np.stack([data, data + 1])),
        (t @ Tensor(data).transpose(1, 2), data @ data.transpose(0, 2, 1)),
        (t[0] @ Tensor(data[0, 0]), data[0] @ data[0, 0]),
        (Tensor(data[0, :, 0]) @ t[1], data[0, :, 0] @ data[1]),
    ]
    for found, wanted in same:
        np.testing.assert_array_equal(found.numpy(), wanted)
        assert found.shape == wanted.shape


shapes = st.lists(st.integers(1, 3), max_size=3)


@given(shapes, shapes)
@settings(max_examples=40, deadline=None)
def test_broadcasting_is_numpys(a: list[int], b: list[int]) -> None:
    x, y = (np.arange(int(np.prod(s))).reshape(s) for s in (a, b))
    try:
        wanted = x - y
    except ValueError:
        with pytest.raises(InvalidError, match=r"SUB\.c3"):
            Tensor(x) - Tensor(y)
        return
    np.testing.assert_array_equal((Tensor(x) - Tensor(y)).numpy(), wanted)


@given(st.integers(0, 2**32), st.sampled_from(VALUE_DTYPES))
@settings(max_examples=60, deadline=None)
def test_arrays_come_back_bit_for_bit(seed: int, dtype: Any) -> None:
    bits = np.random.default_rng(seed).integers(0, 256, 6 * dtype.itemsize, np.uint8)
    data = (bits & 1 if dtype is dtypes.bool else bits).view(STORAGE[dtype.name]).reshape(2, 3)
    t = Tensor(data)
    assert (t.dtype, t.shape) == (dtype, (2, 3))
    assert t.numpy().tobytes() == data.tobytes()
    for found, wanted in zip(t.reshape(6).tolist(), data.reshape(6).tolist(), strict=True):
        assert found == wanted or wanted != wanted


def test_numbers_and_lists_choose_a_dtype() -> None:
    assert [Tensor(v).dtype for v in (True, 1, 1.0, [], [1, 2.0], [[True]], [True, 2])] == [
        *(dtypes.bool, dtypes.int32, dtypes.float32),
        *(dtypes.float32, dtypes.float32, dtypes.bool, dtypes.int32),
    ]
    assert Tensor([1, 2], dtypes.float16).tolist() == [1.0, 2.0]
    assert Tensor(np.array([1, 2]), dtypes.float16).dtype is dtypes.float16
    assert (Tensor([[], []]).shape, Tensor([[], []]).tolist()) == ((2, 0), [[], []])
    assert Tensor(np.float32(2.5)).item() == 2.5


def test_a_number_takes_the_dtype_it_meets() -> None:
    for dtype in VALUE_DTYPES:
        found = Tensor([1], dtype).maximum(1)
        assert (found.dtype, found.tolist()) == (dtype, [1])
    assert (np.float32(2) * Tensor([1.5])).tolist() == [3.0]
    assert (np.array([1, 2], np.int32) + Tensor([1, 2])).tolist() == [2, 4]


def test_equal_numbers_keep_their_bits() -> None:
    one = Tensor([1.0])
    assert [(one / zero).item() for zero in (0.0, -0.0, 0, False)] == [
        *(float("inf"), float("-inf"), float("inf"), float("inf")),
    ]
    assert Tensor(True).uop is not Tensor(1).uop


def test_data_is_copied() -> None:
    data = np.array([1, 2])
    t = Tensor(data)
    data[0] = 9
    assert t.tolist() == [1, 2]


def test_data_lives_as_long_as_the_graph() -> None:
    t = Tensor([1, 2]) + Tensor([3, 4])
    gc.collect()
    assert t.tolist() == [4, 6]
    assert len(contents(t.uop)) == 2


def test_every_op_is_reached() -> None:
    """`of` builds the node that the constructor builds, for each op on elements."""
    for declaration in DECLARATIONS.values():
        if not declaration.is_elementwise or declaration.op is Op.CAST:
            continue
        like = declaration.dtypes[0]
        operands = [param(k, (2,), like) for k in range(len(declaration.src))]
        if declaration.op is Op.WHERE:
            operands[0] = param(0, (2,), dtypes.bool)
        assert Tensor.of(declaration.op, *operands).uop is UOp(declaration.op, *operands)


OPERATORS: dict[Op, Callable[[Any, Any], Any]] = {
    Op.ADD: operator.add, Op.SUB: operator.sub, Op.MUL: operator.mul, Op.IDIV: operator.floordiv,
    Op.MOD: operator.mod, Op.AND: operator.and_, Op.OR: operator.or_, Op.XOR: operator.xor,
    Op.SHL: operator.lshift, Op.SHR: operator.rshift, Op.CMPLT: operator.lt, Op.CMPLE: operator.le,
    Op.CMPGT: operator.gt, Op.CMPGE: operator.ge, Op.CMPEQ: operator.eq, Op.CMPNE: operator.ne,
}  # fmt: skip


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.name)
def test_an_operator_makes_one_op(op: Op) -> None:
    x, y = (param(k, (2,), dtypes.int32) for k in range(2))
    assert OPERATORS[op](Tensor(x), Tensor(y)).uop is UOp(op, x, y)
    if not op.name.startswith("CMP"):
        assert OPERATORS[op](7, Tensor(y)).uop is UOp(op, const(7, dtypes.int32), y)


METHODS: dict[Op, Callable[..., Tensor]] = {
    Op.NEG: operator.neg, Op.DIV: operator.truediv, Op.POW: operator.pow, Op.MAX: Tensor.maximum,
    Op.MULACC: Tensor.mulacc, Op.RECIP: Tensor.recip, Op.TRUNC: Tensor.trunc, Op.SQRT: Tensor.sqrt,
    Op.SIN: Tensor.sin, Op.EXP2: Tensor.exp2, Op.LOG2: Tensor.log2,
    Op.CONTIGUOUS: Tensor.contiguous, Op.CONTIGUOUSBACKWARD: Tensor.contiguous_backward,
    Op.DETACH: Tensor.detach,
}  # fmt: skip


@pytest.mark.parametrize("op", METHODS, ids=lambda op: op.name)
def test_a_method_makes_one_op(op: Op) -> None:
    operands = [param(k, (2,), dtypes.float32) for k in range(len(DECLARATIONS[op].src))]
    assert METHODS[op](*map(Tensor, operands)).uop is UOp(op, *operands)


def test_a_tensor_of_a_node() -> None:
    t = Tensor(const(3, dtypes.int8))
    assert (t.ndim, t.size, t.device, t.axis, t.item()) == (0, 1, None, None, 3)
    assert Tensor(const(3, dtypes.int8), dtypes.float16).dtype is dtypes.float16
    assert Tensor(const(3, dtypes.int8), device="GPU").device == "GPU"


def test_assign_stores_and_waits() -> None:
    t = Tensor([1, 2])
    after = t.assign(t * 5)
    assert after.uop.op is Op.AFTER
    assert (after.tolist(), (t + 1).tolist(), t.assign(7).tolist()) == ([5, 10], [2, 3], [7, 7])
    with pytest.raises(InvalidError, match=r"STORE\.c4"):
        (t + 1).assign(3)


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.int32, dtypes.float16], ids=repr)
def test_realize_forgets_the_graph(dtype: DType) -> None:
    t = (Tensor([[1, 2, 3], [4, 5, 6]], dtype, "GPU") * 3 + 1).realize()
    assert t.uop.op is Op.BUFFER
    assert (t.dtype, t.shape, t.device) == (dtype, (2, 3), "GPU")
    assert t.tolist() == [[4, 7, 10], [13, 16, 19]]


def test_nothing_is_evaluated_without_an_evaluator() -> None:
    with using(None):
        t = Tensor([1, 2]) + 1
        for value in (t.numpy, t.tolist, t.realize, t[0].item):
            with pytest.raises(UnsupportedError, match="no evaluator is installed"):
                value()
    assert t.tolist() == [2, 3]


def test_the_work_is_done_when_a_value_is_used() -> None:
    done: list[UOp] = []

    def noted(root: UOp, inputs: dict[int, Array]) -> object:
        done.append(root)
        return evaluate(root, inputs)

    with using(NumpyEvaluator(noted)):
        t = Tensor([1, 2]) * 3 + 1
        total = t.sum()
        assert (total.shape, total.dtype, done) == ((), dtypes.int32, [])
        assert (total.tolist(), t.tolist()) == (11, [4, 7])
    assert done == [total.uop, t.uop]


def test_other_libraries_get_the_value() -> None:
    t = Tensor([1.0, 2.0]) * 2
    assert np.asarray(t).tolist() == [2.0, 4.0]
    assert np.from_dlpack(t).tolist() == [2.0, 4.0]
    assert np.asarray(t, np.int64).dtype == np.int64


def test_other_threads_have_the_evaluator_too() -> None:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append((Tensor([1, 2]) + 1).tolist()))
    thread.start()
    thread.join()
    assert found == [[2, 3]]


def test_a_tensor_is_immutable() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        Tensor(1).uop = Tensor(2).uop


def test_tensors_are_told_apart_by_identity() -> None:
    a, b = Tensor(1), Tensor(1)
    assert len({a, b}) == 2
    assert (a == b).item() is True


def line_of(caught: pytest.ExceptionInfo[InvalidError], marked: str) -> bool:
    """Whether the error names the line of this file that holds the mark."""
    path, _, line = caught.value.where.rpartition(":")
    with open(path) as file:
        return path == __file__ and marked in file.read().splitlines()[int(line) - 1]


def test_errors_name_the_line_of_the_user() -> None:
    a, b = Tensor([1, 2]), Tensor([1, 2, 3])
    with pytest.raises(InvalidError, match=r"ADD\.c3") as caught:
        a + b  # mark 1
    assert line_of(caught, "mark 1")
    with pytest.raises(InvalidError, match=r"RESHAPE\.c2") as caught:
        b.reshape(2, -1)  # mark 2
    assert line_of(caught, "mark 2")
    with pytest.raises(InvalidError, match=r"TENSOR\.c1") as caught:
        a + 1.5  # mark 3
    assert line_of(caught, "mark 3")


@pytest.mark.parametrize(
    ("label", "build"),
    [
        ("TENSOR.c1", lambda: Tensor([300], dtypes.uint8)),
        ("TENSOR.c1", lambda: Tensor([1]) * float("nan")),
        ("TENSOR.c2", lambda: Tensor([[1, 2], [3]])),
        ("TENSOR.c2", lambda: Tensor([1, [2]])),
        ("TENSOR.c2", lambda: Tensor("text")),
        ("TENSOR.c2", lambda: Tensor([1]) + "text"),
        ("TENSOR.c2", lambda: Tensor(np.array(["text"]))),
        ("TENSOR.c3", lambda: Tensor([1, 2])[2]),
        ("TENSOR.c3", lambda: Tensor([1, 2])[0, 0]),
        ("TENSOR.c4", lambda: bool(Tensor([True, False]))),
        ("TENSOR.c4", lambda: int(Tensor([]))),
        ("TENSOR.c4", lambda: [1][Tensor(0.0)]),
        ("TENSOR.c9", lambda: Tensor([[1, 2]]) @ Tensor([[1, 2]])),
        ("TENSOR.c9", lambda: Tensor([1, 2]) @ Tensor([1])),
        ("TENSOR.c9", lambda: Tensor([1]) @ 2),
        ("TENSOR.c10", lambda: Tensor([1]).tanh()),
        ("ADD.c2", lambda: Tensor([1]) + Tensor([1.0])),
        ("DIV.c1", lambda: Tensor([1]) / 2),
        ("PERMUTE.c1", lambda: Tensor([[1]]).permute(0, 0)),
        ("FLIP.c1", lambda: Tensor([1]).flip(1)),
        ("PAD.c1", lambda: Tensor([1]).pad((0, 1), (1, 0))),
        ("SHRINK.c3", lambda: Tensor([1]).shrink((0, 2))),
        ("EXPAND.c2", lambda: Tensor([1, 2]).expand(3)),
        ("REDUCE.c2", lambda: Tensor([1]).sum(1)),
        ("TENSOR.c4", lambda: Tensor([1, 2]).item()),
    ],
)
def test_bad_input_has_a_label(label: str, build: Callable[[], Any]) -> None:
    with pytest.raises(InvalidError) as caught:
        build()
    assert caught.value.label == label
    assert caught.value.where.startswith(f"{__file__}:")


def test_sizes_are_integers() -> None:
    with pytest.raises(InvalidError, match=r"SHAPE\.c1"):
        Tensor([1, 2]).reshape(2.0)  # type: ignore[arg-type]


def test_a_tensor_without_axes_has_no_length() -> None:
    with pytest.raises(TypeError, match="no length"):
        len(Tensor(1))
