"""`from_onnx`: what it returns, what it refuses and how, and the series behind its functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from uop import Op, Tensor, evaluate, from_onnx, to_onnx
from uop.conformance.adapters.onnx import library
from uop.conformance.adapters.onnx.ops.activations import UNARY
from uop.conformance.adapters.onnx.read import NodeError
from uop.conformance.checks import OptionError
from uop.interpreter.numeric.storage import np_dtype
from uop.spec.errors import MalformedError, UnsupportedError
from uop.spec.graph import slots_of
from uop.spec.properties.shape import size
from uop.spec.text.uop_file import read_file

onnx = pytest.importorskip("onnx", reason="pip install 'uop[onnx]'")

from onnx import TensorProto, parser  # noqa: E402
from onnx.external_data_helper import set_external_data  # noqa: E402
from onnx.helper import make_tensor  # noqa: E402

EXAMPLES = Path(__file__).parents[2] / "examples"
HEAD = '<ir_version: 8, opset_import: ["": 17]>\n'


def model(text: str, head: str = HEAD) -> Any:
    return parser.parse_model(head + text)


def run(text: str, **inputs: Any) -> Any:
    program = from_onnx(model(text))
    return evaluate(program.root, program.inputs(**inputs))


SUM = "g (float[2] x, float[2] y) => (float[2] z) { z = Add(x, y) }"


def test_a_program_has_inputs_weights_and_outputs_by_name() -> None:
    program = from_onnx(
        model(
            "g (float[2] x) => (float[2] a, float[2] b) <float[2] w = {1, 2}> "
            "{ a = Add(x, w)\n b = Mul(x, w) }"
        )
    )
    assert program.root.op is Op.TUPLE
    assert (program.slots, program.outputs) == ({"x": 0}, ("a", "b"))
    assert [w.tolist() for w in program.weights.values()] == [[1, 2]]
    a, b = evaluate(program.root, program.inputs(x=np.float32([3, 5])))
    assert (a.tolist(), b.tolist()) == ([4, 7], [3, 10])


def test_a_model_may_be_bytes_or_a_file(tmp_path: Path) -> None:
    path = tmp_path / "sum.onnx"
    path.write_bytes(model(SUM).SerializeToString())
    assert from_onnx(path).root is from_onnx(path.read_bytes()).root is from_onnx(model(SUM)).root


def test_weights_may_lie_in_a_file_beside_the_model(tmp_path: Path) -> None:
    proto = model("g (float[2] x) => (float[2] y) { y = Add(x, w) }")
    tensor = make_tensor("w", TensorProto.FLOAT, [2], np.float32([1, 2]).tobytes(), raw=True)
    set_external_data(tensor, "weights.bin")
    tensor.ClearField("raw_data")
    proto.graph.initializer.append(tensor)
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(MalformedError, match=r"no valid ONNX model: .*weights\.bin"):
        from_onnx(path)
    (tmp_path / "weights.bin").write_bytes(np.float32([1, 2]).tobytes())
    program = from_onnx(path)
    assert evaluate(program.root, program.inputs(x=np.float32([3, 5]))).tolist() == [4, 7]


def test_an_input_that_no_output_needs_is_not_passed_on() -> None:
    program = from_onnx(model("g (float[2] x, float[2] y) => (float[2] z) { z = Relu(y) }"))
    assert program.inputs(x=np.zeros(2), y=np.ones(2)).keys() == {1}


@pytest.mark.parametrize("names", [("x",), ("x", "y", "z")])
def test_inputs_must_be_those_of_the_model(names: tuple[str, ...]) -> None:
    with pytest.raises(OptionError, match="expected x, y; found"):
        from_onnx(model(SUM)).inputs(**dict.fromkeys(names, np.zeros(2, np.float32)))


def test_a_value_that_decides_a_shape_must_be_known() -> None:
    text = "g (float[2,3] x, int64[n] s) => (float[a] y) { t = Identity(s)\n y = Reshape(x, t) }"
    with pytest.raises(NodeError, match=r"Reshape, node 1: its shape .* depends") as caught:
        from_onnx(model(text), sizes={"n": 1})
    assert caught.value.needs == ("s",)
    program = from_onnx(model(text), static={"s": np.array([-1])})
    assert (program.root.shape, program.slots) == ((6,), {"x": 0})


def test_shapes_are_computed_where_they_depend_on_shapes_alone() -> None:
    text = (
        "g (float[2,3] x) => (float[a,b] y) "
        "{ s = Shape(x)\n one = Constant<value_ints = [1]>()\n t = Concat<axis = 0>(s, one)"
        "\n y = Reshape(x, t) }"
    )
    assert from_onnx(model(text)).root.shape == (2, 3, 1)


def test_a_symbolic_dimension_needs_its_number() -> None:
    text = "g (float[N] x) => (float[N] y) { y = Relu(x) }"
    with pytest.raises(UnsupportedError, match="'x' has the symbolic dimension 'N'"):
        from_onnx(model(text))
    assert from_onnx(model(text), sizes={"N": 5}).root.shape == (5,)


def test_a_function_of_the_model_is_expanded() -> None:
    text = """g (float[2] x) => (float[2] y) { y = own.scaled <by = 3.0> (x) }
    <domain: "own", opset_import: ["": 17]>
    scaled <by> (a) => (b) { k = Constant <value_float: float = @by> ()
    b = Mul(a, k) }"""
    head = '<ir_version: 8, opset_import: ["": 17, "own": 1]>\n'
    program = from_onnx(model(text, head))
    assert evaluate(program.root, program.inputs(x=np.float32([1, 2]))).tolist() == [3, 6]


def test_a_branch_sees_the_attributes_of_the_function_around_it() -> None:
    text = """g (float[2] x) => (float[2] y) { y = own.scaled <by = 3.0> (x) }
    <domain: "own", opset_import: ["": 17]>
    scaled <by> (a) => (b) {
        yes = Constant <value = bool {1}> ()
        b = If (yes) <
            then_branch = t () => (float[2] c) {
                k = Constant <value_float: float = @by> ()
                c = Mul(a, k)
            },
            else_branch = e () => (float[2] d) { d = Neg(a) }
        >
    }"""
    head = '<ir_version: 8, opset_import: ["": 17, "own": 1]>\n'
    program = from_onnx(model(text, head))
    assert evaluate(program.root, program.inputs(x=np.float32([1, 2]))).tolist() == [3, 6]


def test_the_place_of_a_node_in_a_body_is_named() -> None:
    text = """g (float[2] x) => (float[2] y) { y = own.kept (x) }
    <domain: "own", opset_import: ["": 17]> kept (a) => (b) { c = Relu(a)
    b = Unique(c) }"""
    head = '<ir_version: 8, opset_import: ["": 17, "own": 1]>\n'
    with pytest.raises(NodeError, match=r"^Unique, node 1, in own\.kept, node 0: this op has no"):
        from_onnx(model(text, head))


def test_rules_follow_the_version_of_the_operator_set() -> None:
    """Softmax was over all axes from one on before version 13; here ONNX expands it."""
    text = "g (float[1,2,2] x) => (float[1,2,2] y) { y = Softmax <axis = 1> (x) }"
    zeros = np.zeros((1, 2, 2), np.float32)
    for version, share in ((11, 0.25), (13, 0.5)):
        program = from_onnx(model(text, f'<ir_version: 8, opset_import: ["": {version}]>'))
        found = evaluate(program.root, program.inputs(x=zeros))
        assert found.tolist() == np.full((1, 2, 2), share).tolist()


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("g (string[2] x) => (string[2] y) { y = Identity(x) }", UnsupportedError, "STRING"),
        ("g (float[2] x) => (float[2] y) { y = Relu(z) }", MalformedError, "input 'z'"),
        (
            "g (float[2] x) => (float[2] y) { y = Relo(x) }",
            MalformedError,
            "No Op registered for Relo",
        ),
        ("g (float[2] x) => (float[2] y) { y = a.B(x) }", MalformedError, "domain 'a'"),
        (
            "g (float[2] x) => (float[2] y) { y = Relu <slope = 1> (x) }",
            MalformedError,
            "attribute: slope",
        ),
        ("g (float[2] x) => (float[2] y) { y = Softmax <axis = 4> (x) }", MalformedError, "axis 4"),
    ],
)
def test_errors_say_what_and_where(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        from_onnx(model(text))


def test_what_is_no_model_is_malformed(tmp_path: Path) -> None:
    for data in (b"no model", b""):
        with pytest.raises(MalformedError, match=r"no (valid )?ONNX model: "):
            from_onnx(data)
    with pytest.raises(OptionError, match="No such file"):
        from_onnx(tmp_path / "absent.onnx")
    with pytest.raises(OptionError, match="static: expected inputs of the model; found 'q'"):
        from_onnx(model(SUM), static={"q": np.zeros(1)})


def test_a_static_input_has_the_dtype_that_the_model_declares() -> None:
    with pytest.raises(OptionError, match="input 'x': expected float32; found int64"):
        from_onnx(model(SUM), static={"x": np.array([1, 2])})


def test_a_window_must_fit() -> None:
    text = "g (float[1,1,2] x) => (float[1,1,n] y) { y = MaxPool <kernel_shape = [3]> (x) }"
    with pytest.raises(MalformedError, match=r"MaxPool, node 0: a window of 3 .* at most 2"):
        from_onnx(model(text))


def test_without_the_package_the_error_has_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(library, "PARTS", ("no_such_part",))
    library.onnx.cache_clear()
    try:
        with pytest.raises(UnsupportedError, match=r'pip install "uop\[onnx\]"'):
            from_onnx(b"")
    finally:
        library.onnx.cache_clear()


def test_a_loop_is_written_out_and_its_branches_are_chosen() -> None:
    body = """(int64 i, bool go, float[2] v) => (bool again, float[2] w, float[2] row)
    { again = Identity(go)\n w = Add(v, v)\n row = Neg(v) }"""
    text = f"""g (float[2] x) => (float[2] y, float[3,2] rows) <int64 n = {{3}}>
    {{ y, rows = Loop <body = b {body}> (n, , x) }}"""
    y, rows = run(text, x=np.float32([1, 2]))
    assert y.tolist() == [8, 16]
    assert rows.tolist() == [[-1, -2], [-2, -4], [-4, -8]]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.uop")), ids=lambda path: path.stem)
def test_what_is_written_as_a_model_reads_back_as_a_program_of_equal_results(path: Path) -> None:
    root = read_file(path).cases[0].root
    assert root is not None
    inputs = {
        slot: (np.arange(size(leaf.shape)) % 7).reshape(leaf.shape).astype(np_dtype(leaf.dtype))
        for slot, leaf in slots_of(root).items()
    }
    again = from_onnx(to_onnx(root))
    found = evaluate(again.root, again.inputs(**{f"in{k}": a for k, a in inputs.items()}))
    np.testing.assert_array_equal(found, evaluate(root, inputs), strict=True)


ORACLES: dict[str, Callable[[float], float]] = {
    "Sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "Softplus": lambda x: math.log1p(math.exp(x)),
    "Tanh": math.tanh,
    "Asin": math.asin,
    "Acos": math.acos,
    "Atan": math.atan,
    "Sinh": math.sinh,
    "Cosh": math.cosh,
    "Asinh": math.asinh,
    "Acosh": math.acosh,
    "Atanh": math.atanh,
    "Erf": math.erf,
}
DOMAINS = {"Asin": (-1.0, 1.0), "Acos": (-1.0, 1.0), "Atanh": (-1.0, 1.0), "Acosh": (1.0, 50.0)}


@pytest.mark.parametrize("name", ORACLES)
def test_functions_of_one_number_are_within_their_bound(name: str) -> None:
    low, high = DOMAINS.get(name, (-8.0, 8.0))
    near = [s * 2.0**-k for k in range(30) for s in (1, -1)]
    points = np.float32([*np.linspace(low, high, 501)[1:-1], *near])
    points = points[(points > low) & (points < high)]
    found = UNARY[name](Tensor(points)).numpy()
    for x, y in zip(points.tolist(), found.tolist(), strict=True):
        assert abs(y - ORACLES[name](x)) <= 2e-6 * abs(ORACLES[name](x)), (name, x)
