"""A trace has an op for each function that was called; its text reads back."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import programs

from uop import Op, Tensor, UOp, dtypes, full, function, param, parse_trace, tanh, trace
from uop import variable as size
from uop.spec.case import FileCase
from uop.spec.errors import InvalidError, MalformedError
from uop.spec.frontend import calls, collectives, compositions
from uop.spec.frontend.evaluator import using
from uop.spec.text.uop_file import read_file

EVERY_OP = read_file(Path(__file__).parents[1] / "spec" / "every_op.uop").cases

WORKED = """\
t0 = storage(data=[2, 3], shape=(2,), dtype=int32, device=None)
t1 = storage(data=0.5, shape=(), dtype=float32, device=None)
t2 = fill(t0, t1, dtype=float32)
t3 = unaryelementwise(t2, kind=Kind.TANH)
outputs:
    t3: [shape=([2, 3]), dtype=(float32), loc=(None)]"""


def lines(*outputs: Tensor) -> list[str]:
    """The ops of a trace, which reads back."""
    found = trace(*outputs)
    assert parse_trace(str(found)) == found
    return [repr(op) for op in found.ops]


def last(t: Tensor) -> str:
    return lines(t)[-1].partition(" = ")[2]


def test_the_documents_example() -> None:
    out = tanh(full((2, 3), value=0.5))
    assert str(trace(out)) == WORKED
    assert trace(out) == parse_trace(WORKED)
    assert trace(out) != trace(out, out)
    assert len({trace(out), parse_trace(WORKED)}) == 1


def test_evaluation_leaves_the_trace_and_begins_the_next() -> None:
    out = tanh(full((2,), value=0.0)).eval()
    assert str(trace(out)).count(" = ") == 4
    assert lines(out + 1) == [
        "t0 = storage(data=[0.0, 0.0], shape=(2,), dtype=float32, device=None)",
        "t1 = storage(data=1.0, shape=(), dtype=float32, device=None)",
        "t2 = binaryelementwise(t0, t1, kind=Kind.SUM)",
    ]


def test_tensors_know_their_ops_and_ops_their_tensors() -> None:
    x = Tensor([[1.0, 2.0]], device="gpu:0")
    found = trace(x @ x.T)
    data, turned, product = found.ops
    assert [op.name for op in found.ops] == ["storage", "permute", "matmul"]
    assert product.inputs == (*data.outputs, *turned.outputs)
    assert turned.inputs == data.outputs
    for op in found.ops:
        for t in op.outputs:
            assert t.producer is op
            assert t.uop is not None
            assert (t.shape, t.dtype, t.device) == (t.uop.shape, t.uop.dtype, t.uop.device)
    assert found.outputs == product.outputs
    # What an op computes is the graph between its node and those of its inputs.
    (out,) = product.outputs
    assert {t.uop for t in product.inputs} <= set(out.uop.toposort() if out.uop else ())


X = Tensor([[1.0, -2.0], [3.0, 4.0]])
N = Tensor([1, 2])
P = Tensor([True, False])

FORMS: list[tuple[Callable[[], Tensor], str]] = [
    (lambda: X + X, "binaryelementwise(t0, t0, kind=Kind.SUM)"),
    (lambda: X - X, "binaryelementwise(t0, t0, kind=Kind.SUB)"),
    (lambda: N // N, "binaryelementwise(t0, t0, kind=Kind.FLOOR_DIV)"),
    (lambda: X < X, "binaryelementwise(t0, t0, kind=Kind.LESS)"),
    (lambda: X.maximum(X), "binaryelementwise(t0, t0, kind=Kind.MAXIMUM)"),
    (lambda: X.minimum(1), "binaryelementwise(t0, t1, kind=Kind.MINIMUM)"),
    (lambda: -X, "unaryelementwise(t0, kind=Kind.NEG)"),
    (lambda: ~N, "unaryelementwise(t0, kind=Kind.INVERT)"),
    (lambda: ~P, "unaryelementwise(t0, kind=Kind.INVERT)"),
    (lambda: abs(X), "unaryelementwise(t0, kind=Kind.ABS)"),
    (lambda: X.exp(), "unaryelementwise(t0, kind=Kind.EXP)"),
    (lambda: X.log(), "unaryelementwise(t0, kind=Kind.LOG)"),
    (lambda: X.relu(), "unaryelementwise(t0, kind=Kind.RELU)"),
    (lambda: X.sigmoid(), "unaryelementwise(t0, kind=Kind.SIGMOID)"),
    (lambda: X.sqrt(), "unaryelementwise(t0, kind=Kind.SQRT)"),
    (lambda: X.mulacc(X, 1), "mulacc(t0, t0, t1)"),
    (lambda: P.where(X, 0), "where(t0, t1, t2)"),
    (lambda: X.cast(dtypes.int8), "cast(t0, dtype=int8)"),
    (lambda: X.bitcast(dtypes.int32), "bitcast(t0, dtype=int32)"),
    (lambda: X.reshape(4, -1), "reshape(t0, shape=(4, 1))"),
    (lambda: X.expand(3, -1, 2), "expand(t0, shape=(3, -1, 2))"),
    (lambda: X.permute(1, 0), "permute(t0, order=(1, 0))"),
    (lambda: X.flip(1), "flip(t0, flags=(False, True))"),
    (lambda: X.pad((1, 0), (0, 2)), "pad(t0, offset=(1, 0), shape=(3, 4), fill=INVALID)"),
    (lambda: X.shrink((1, 2), (0, 1)), "shrink(t0, offset=(1, 0), shape=(1, 1))"),
    (lambda: X[0, 1:], "getitem(t0, key=(0, [1, None, None]))"),
    (lambda: X[..., None, N - 1], "getitem(t0, t3, key=(Ellipsis, None, tensor))"),
    (lambda: Tensor.stack(X, X), "stack(t0, t0)"),
    (lambda: X.sum(), "reduce(t0, kind=Kind.SUM, axes=(0, 1), keepdims=False)"),
    (lambda: X.prod(-1), "reduce(t0, kind=Kind.PROD, axes=(1,), keepdims=False)"),
    (lambda: X.max(0), "reduce(t0, kind=Kind.MAX, axes=(0,), keepdims=False)"),
    (lambda: X.mean(np.int64(0)), "reduce(t0, kind=Kind.MEAN, axes=(0,), keepdims=False)"),
    (lambda: X.reduce(Op.ADD, 1), "reduce(t0, kind=Kind.SUM, axes=(1,), keepdims=True)"),
    (lambda: X @ X[0], "matmul(t0, t1)"),
    (lambda: X.copy("gpu:1"), "copy(t0, device=gpu:1)"),
    (lambda: X.copy(("a", "b c")), 'copy(t0, device=(a, "b c"))'),
    (lambda: X.assign(X + 1), "assign(t0, t2)"),
    (lambda: X.contiguous(), "contiguous(t0)"),
    (lambda: X.detach(), "detach(t0)"),
    (lambda: compositions.softmax(X, 0), "softmax(t0, axis=0)"),
    (lambda: compositions.softmax(X), "softmax(t0, axis=-1)"),
    (lambda: compositions.layer_norm(X, N.cast(dtypes.float32), X[0], 1e-5),
     "layer_norm(t0, t2, t3, epsilon=1e-05)"),
    (lambda: compositions.attention(X, value=X, key=X), "attention(t0, t0, t0)"),
    (lambda: compositions.arange(3), "arange(n=3)"),
    (lambda: compositions.gather(X[0], N - 1), "gather(t1, t4)"),
    (lambda: collectives.broadcast(X[0], ("a", "b")), 'broadcast(t1, devices=("a", "b"))'),
    (lambda: Tensor(2.0), "storage(data=2.0, shape=(), dtype=float32, device=None)"),
    (lambda: Tensor([[], []]), "storage(data=[[], []], shape=(2, 0), dtype=float32, device=None)"),
    (lambda: Tensor(list(range(65))), "storage(shape=(65,), dtype=int32, device=None)"),
    (lambda: Tensor([True], device="inf"),
     'storage(data=[True], shape=(1,), dtype=bool, device="inf")'),
    (lambda: full((), 7), "fill(t0, t1, dtype=int32)"),
    (lambda: Tensor(param(3, (2,), dtypes.int8)), "param(shape=(2,), slot=3, dtype=int8)"),
]  # fmt: skip


@pytest.mark.parametrize(("build", "wanted"), FORMS, ids=lambda v: v if isinstance(v, str) else "")
def test_each_function_is_one_op(build: Callable[[], Tensor], wanted: str) -> None:
    assert last(build()) == wanted


def test_a_shape_without_axes_is_a_storage_without_elements() -> None:
    assert lines(full((), 7))[0] == "t0 = storage(data=[], shape=(0,), dtype=int32, device=None)"


def test_a_number_is_a_value_of_its_dtype() -> None:
    values = [float("inf"), float("-inf"), float("nan"), -0.0, 1e300]
    found = parse_trace(str(trace(Tensor(values, dtypes.float64))))
    (data,) = (op.attributes["data"] for op in found.ops)
    np.testing.assert_array_equal(np.array(data), np.array(values))


def test_shared_tensors_are_traced_once() -> None:
    x = Tensor([1, 2])
    y = x + x
    assert [line.partition("(")[0] for line in lines(y * y, y - x, x, y * y)] == [
        "t0 = storage",
        "t1 = binaryelementwise",
        "t2 = binaryelementwise",
        "t3 = binaryelementwise",
    ]
    tail = str(trace(y * y, y - x, x, y * y)).partition("outputs:\n")[2]
    assert re.findall(r"^ +(t\d):", tail, re.MULTILINE) == ["t2", "t3", "t0", "t2"]


def test_devices_of_outputs() -> None:
    x = Tensor([[1, 2], [3, 4]], device=("gpu:0", "b,c"))
    assert str(trace(x)).endswith('loc=(gpu:0, "b,c")]')
    assert parse_trace(str(trace(x))).outputs[0].device == ("gpu:0", "b,c")
    one = Tensor([1], device=("a",))
    assert str(trace(one)).endswith("loc=(a,)]")
    assert parse_trace(str(trace(one))).outputs[0].device == ("a",)


@function
def both(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    return tanh(a @ b), full((2,), 1.5)


@function
def outer(a: Tensor) -> Tensor:
    first, _ = both(a, a.T)
    return first + both(a, a + 1)[1]


def test_a_function_is_an_op_with_a_body() -> None:
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    first, second = both(x, x.T)
    assert (
        str(trace(second, first))
        == """\
f0:
    t0 = param(shape=(2, 2), slot=0, dtype=float32)
    t1 = param(shape=(2, 2), slot=1, dtype=float32)
    t2 = matmul(t0, t1)
    t3 = unaryelementwise(t2, kind=Kind.TANH)
    t4 = storage(data=[2], shape=(1,), dtype=int32, device=None)
    t5 = storage(data=1.5, shape=(), dtype=float32, device=None)
    t6 = fill(t4, t5, dtype=float32)
    outputs:
        t3: [shape=([2, 2]), dtype=(float32), loc=(None)]
        t6: [shape=([2]), dtype=(float32), loc=(None)]
t0 = storage(data=[[1.0, 2.0], [3.0, 4.0]], shape=(2, 2), dtype=float32, device=None)
t1 = permute(t0, order=(1, 0))
t2, t3 = function(t0, t1, body=f0)
outputs:
    t3: [shape=([2]), dtype=(float32), loc=(None)]
    t2: [shape=([2, 2]), dtype=(float32), loc=(None)]"""
    )
    found = trace(outer(x))
    assert parse_trace(str(found)) == found
    assert list(found.bodies) == ["f0", "f1"]
    assert [op.attributes.get("body") for op in found.bodies["f1"].ops].count("f0") == 2


def test_a_symbolic_size_is_unknown() -> None:
    x = Tensor(param(1, (size(0, 1, 8), 2), dtypes.int32))
    assert str(trace(x * 2)).endswith("[shape=([-1, 2]), dtype=(int32), loc=(None)]")
    assert parse_trace(str(trace(x * 2))) == trace(x * 2)


@pytest.mark.parametrize("case", EVERY_OP, ids=lambda case: case.id)
def test_every_op_has_a_form(case: FileCase) -> None:
    lines(Tensor(case.root))


@given(programs())
@settings(max_examples=60, deadline=None)
def test_any_graph_reads_back(root: UOp) -> None:
    found = trace(Tensor(root))
    assert parse_trace(str(found)) == found
    assert len({t.name for op in found.ops for t in op.outputs}) == len(found.ops)


def test_a_chain_may_be_long() -> None:
    t = Tensor([1])
    for _ in range(5000):
        t = t + 1
    assert len(trace(t).ops) == 5002


def test_the_node_of_an_op_computes_its_output() -> None:
    """Each output of a trace, computed from its inputs alone by its part of the graph."""
    x = Tensor([[0.5, 1.0], [2.0, -1.0]])
    out = compositions.softmax(x @ x.T) + tanh(x)
    done: dict[UOp, UOp] = {}
    for op in trace(out).ops:
        node = op.outputs[0].uop
        assert node is not None
        inputs = {t.uop: done[t.uop] for t in op.inputs if t.uop is not None}
        done[node] = Tensor(node.substitute(inputs)).realize().uop
    np.testing.assert_array_equal(Tensor(done[out.uop]).numpy(), out.numpy())


def test_calls_are_kept_while_their_nodes_live() -> None:
    gc.collect()
    before = len(calls._CALLS)
    t = compositions.softmax(full((2, 2), 0.25))
    assert len(calls._CALLS) > before
    del t
    gc.collect()
    assert len(calls._CALLS) == before


def test_what_is_traced_is_a_tensor() -> None:
    for outputs in ((), (X, 3)):
        with pytest.raises(InvalidError, match=r"TRACE\.outputs"):
            trace(*outputs)  # type: ignore[arg-type]
    with pytest.raises(InvalidError, match=r"TEXT\.c1"):
        parse_trace(None)  # type: ignore[arg-type]


def test_tracing_evaluates_nothing() -> None:
    with using(None):
        assert trace(Tensor([1, 2]) * 2).ops


T1 = "t0 = a()\n"
OUT = "outputs:\n    t0: [shape=([]), dtype=(int8), loc=(None)]"

MALFORMED = [
    ("", "1:1", "expected an op or `outputs:`, found the end"),
    ("t0 = a()", "1:1", "found the end"),
    ("outputs:\n  t0: []", "2:3", "expected the end of the text"),
    (T1 + "outputs:\n    t1: [shape=([]), dtype=(int8), loc=(a)]", "3:5", "a line above, found t1"),
    ("t0 = a(t1)\n" + OUT, "1:8", "a line above, found t1"),
    ("t0, t0 = a()\n" + OUT, "1:5", "a second tensor t0"),
    (T1 + T1 + OUT, "2:1", "a second tensor t0"),
    ("t0 = a(k=1, t0)\n" + OUT, "1:13", "tensors come first"),
    ("t0 = a(k=1, k=2)\n" + OUT, "1:13", "a second attribute k"),
    ("t0 = a(k=)\n" + OUT, "1:10", "expected a value"),
    ("t0 = a(k=[1, 2)\n" + OUT, "1:15", "expected ','"),
    ("t0 a()\n" + OUT, "1:4", "expected '='"),
    ("t0 = a() b\n" + OUT, "1:10", "expected the end of the line"),
    ("t0 = $\n" + OUT, "1:6", "unexpected '$'"),
    ("t0 = a(body=f0)\n" + OUT, "1:6", "the name of a body above, found f0"),
    (T1 + OUT + "\nt1 = a()", "4:1", "expected the end of the text"),
    (T1 + " t1 = a()\n" + OUT, "2:2", "with 0 spaces before it"),
    (T1 + OUT.replace("int8", "int9"), "3:29", "expected a dtype"),
    (T1 + OUT.replace("([])", "([a])"), "3:17", "expected a list of sizes"),
    (T1 + OUT.replace("loc", "at"), "3:36", "expected loc="),
    (T1 + OUT.replace("None", "3"), "3:41", "expected devices"),
    ("f0:\n    " + T1 + "    outputs:\nf0:\n    outputs:\n" + T1 + OUT, "4:1", "a second body f0"),
]


@pytest.mark.parametrize(("text", "place", "message"), MALFORMED)
def test_malformed_text_is_refused_at_its_place(text: str, place: str, message: str) -> None:
    with pytest.raises(MalformedError, match=re.escape(message)) as caught:
        parse_trace(text)
    assert f"{caught.value.line}:{caught.value.column}" == place
