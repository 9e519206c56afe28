"""Modules of StableHLO as programs: what they compute, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import graphs, stores
from hypothesis import given, settings
from stablehlo_programs import by_place, fault_if_defined

from uop.conformance.adapters.backend import Inputs
from uop.conformance.adapters.stablehlo.read import from_stablehlo
from uop.conformance.adapters.stablehlo.write import to_stablehlo
from uop.conformance.backends.stablehlo import portable
from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import Array, to_bits
from uop.spec.dtype import dtypes
from uop.spec.errors import MalformedError, UndefinedError, UnsupportedError
from uop.spec.graph import slots_of
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

pytestmark = pytest.mark.slow


def computed(root: UOp, *arrays: Array) -> list[Array]:
    """The results of a program that was read, on the arguments of `main`."""
    inputs = {slot: arrays[slot] for slot in slots_of(root)}
    results = evaluate(root, inputs)
    return [*results] if isinstance(results, tuple) else [np.asarray(results)]


@settings(max_examples=40, deadline=None)
@given(graphs() | stores())
def test_a_program_that_was_written_reads_back_with_its_results(
    drawn: tuple[UOp, Inputs],
) -> None:
    root, inputs = drawn
    try:
        slots = portable(root).slots
    except (UndefinedError, UnsupportedError):
        return
    arguments = by_place(inputs, slots)
    back = from_stablehlo(to_stablehlo(root))
    assert fault_if_defined(root, inputs, lambda: computed(back, *arguments.values())) is None


def main(body: str, result: str = "f32", arguments: str = "") -> str:
    """A module of some lines, which gives %r."""
    lines = "".join(f"    {line.strip()}\n" for line in body.strip().splitlines())
    head = f"  func.func @main({arguments}) -> tensor<{result}> {{\n"
    return f"module {{\n{head}{lines}    return %r : tensor<{result}>\n  }}\n}}\n"


def of_one(op: str, kind: str, *values: float) -> list[object]:
    """What an op gives on a constant."""
    of = f"tensor<{len(values)}x{kind}>"
    numbers = ", ".join(f"{v:e}" if "f" in kind else str(v) for v in values)
    text = main(
        f"%0 = stablehlo.constant dense<[{numbers}]> : {of}\n%r = {op} %0 : {of}",
        f"{len(values)}x{kind}",
    )
    (found,) = computed(from_stablehlo(text))
    return [str(v) for v in found.tolist()] if "f" in kind else found.tolist()


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("floor", "-3.0 -2.0 -1.0 -0.0 0.0 0.0 1.0 2.0"),
        ("ceil", "-2.0 -1.0 -0.0 -0.0 0.0 1.0 2.0 3.0"),
        ("round_nearest_even", "-2.0 -2.0 -0.0 -0.0 0.0 0.0 2.0 2.0"),
        ("round_nearest_afz", "-3.0 -2.0 -1.0 -0.0 0.0 1.0 2.0 3.0"),
        ("sign", "-1.0 -1.0 -1.0 -0.0 0.0 1.0 1.0 1.0"),
        ("abs", "2.5 1.5 0.5 0.0 0.0 0.5 1.5 2.5"),
    ],
)
@pytest.mark.parametrize("kind", ["f64", "f32", "bf16", "f8E5M2"])
def test_roundings_are_exact(op: str, kind: str, expected: str) -> None:
    values = (-2.5, -1.5, -0.5, -0.0, 0.0, 0.5, 1.5, 2.5)
    found = of_one(f"stablehlo.{op}", kind, *values)
    # The spec lets abs(-0.0), a maximum of zeros, have either sign.
    assert [str(v).replace("-0.0", "0.0") if op == "abs" else v for v in found] == expected.split()


@pytest.mark.parametrize(
    ("op", "kind", "values", "expected"),
    [
        ("popcnt", "i8", (-1, 0, 5, -128), [8, 0, 2, 1]),
        ("popcnt", "ui64", ((1 << 64) - 1, 6), [64, 2]),
        ("count_leading_zeros", "i16", (-1, 0, 5, 256), [0, 16, 13, 7]),
        ("not", "i8", (-1, 0, 5), [0, -1, -6]),
        ("sign", "i8", (-7, 0, 5), [-1, 0, 1]),
        ("abs", "i8", (-7, 0, -128), [7, 0, -128]),
    ],
)
def test_ops_on_integers(op: str, kind: str, values: tuple[int, ...], expected: list[int]) -> None:
    assert of_one(f"stablehlo.{op}", kind, *values) == expected


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("shift_left", [-128, -8, 0, 0, 0]),
        ("shift_right_arithmetic", [-1, -2, -1, -1, -1]),
        ("shift_right_logical", [1, 126, 0, 0, 0]),
    ],
)
def test_shifts_by_all_bits_or_more_leave_what_fills(op: str, expected: list[int]) -> None:
    text = main(
        f"""%0 = stablehlo.constant dense<[-1, -4, -1, -4, -4]> : tensor<5xi8>
        %1 = stablehlo.constant dense<[7, 1, 8, 100, -1]> : tensor<5xi8>
        %r = stablehlo.{op} %0, %1 : tensor<5xi8>""",
        "5xi8",
    )
    assert computed(from_stablehlo(text))[0].tolist() == expected


CONSTANTS = {
    "f32": ("[1.5, 0x7FC00001, -0.0, 1.0e-45]", [0x3FC00000, 0x7FC00001, 1 << 31, 1]),
    "bf16": ("[1.5, 0x7FC1, -0.0, 0xFF80]", [0x3FC0, 0x7FC1, 0x8000, 0xFF80]),
    "f8E4M3FN": ("[1.0, 0x7F, -0.0, 0xFF]", [0x38, 0x7F, 0x80, 0xFF]),
    "f8E5M2": ('"0x3C7D80FC"', [0x3C, 0x7D, 0x80, 0xFC]),
    "ui64": ("[18446744073709551615, 0, 1, 2]", [(1 << 64) - 1, 0, 1, 2]),
    "i1": ("[true, false, false, true]", [1, 0, 0, 1]),
    "i16": ("-2", [0xFFFE] * 4),
    "f16": ("0x7E01", [0x7E01] * 4),
}


@pytest.mark.parametrize("kind", CONSTANTS)
def test_constants_keep_their_bits(kind: str) -> None:
    text, expected = CONSTANTS[kind]
    module = main(f"%r = stablehlo.constant dense<{text}> : tensor<2x2x{kind}>", f"2x2x{kind}")
    if "[" in text:
        module = main(
            f"%0 = stablehlo.constant dense<{text}> : tensor<4x{kind}>\n"
            f"%r = stablehlo.reshape %0 : (tensor<4x{kind}>) -> tensor<2x2x{kind}>",
            f"2x2x{kind}",
        )
    (found,) = computed(from_stablehlo(module))
    assert to_bits(found).reshape(-1).tolist() == expected


def test_a_splat_is_one_constant() -> None:
    root = from_stablehlo(main("%r = stablehlo.constant dense<7> : tensor<3x4xi8>", "3x4xi8"))
    assert next(u.op for u in root.toposort() if u.dtype is dtypes.int8) is Op.CONST
    assert not any(u.op is Op.BINARY for u in root.toposort())


ARGUMENT = "%a: tensor<4xf32>"
REFUSED = {
    "no image": (
        main("%r = stablehlo.cholesky %a : tensor<2x2xf32>", "2x2xf32", "%a: tensor<2x2xf32>"),
        "3:10: stablehlo.cholesky: it has no image",
    ),
    "dynamic": (
        "func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> {\n  return %a : tensor<?xf32>\n}",
        r"^argument 0 of main: tensor<\?xf32> has a dynamic dimension",
    ),
    "complex": (
        main("%r = stablehlo.negate %a : tensor<2xcomplex<f32>>", "2xcomplex<f32>",
             "%a: tensor<2xcomplex<f32>>"),
        "no dtype is complex<f32>",
    ),
    "tuple": (
        "func.func @main(%a: tuple<tensor<f32>>) {\n  return\n}",
        "expected a tensor, found tuple<tensor<f32>>",
    ),
    "power of integers": (
        main("%r = stablehlo.power %a, %a : tensor<2xi32>", "2xi32", "%a: tensor<2xi32>"),
        "3:10: stablehlo.power: of int32",
    ),
    "total order": (
        main("%r = stablehlo.compare LT, %a, %a, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) "
             "-> tensor<4xi1>", "4xi1", ARGUMENT),
        "3:10: stablehlo.compare: in total order",
    ),
    "fold of two ops": (
        main("""%0 = stablehlo.constant dense<0.0> : tensor<f32>
        %r = "stablehlo.reduce"(%a, %0) <{dimensions = array<i64: 0>}> ({
        ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = stablehlo.negate %x : tensor<f32>
        %t = stablehlo.add %s, %y : tensor<f32>
        stablehlo.return %t : tensor<f32>
        }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>""", "f32", ARGUMENT),
        "4:10: stablehlo.reduce: expected a body of one of add, .*; found stablehlo.negate, ",
    ),
    "in a function": (
        "func.func @main(%a: tensor<f32>) -> tensor<f32> {\n"
        "  %0 = call @f(%a) : (tensor<f32>) -> tensor<f32>\n  return %0 : tensor<f32>\n}\n"
        "func.func private @f(%a: tensor<f32>) -> tensor<f32> {\n"
        "  %0 = stablehlo.remainder %a, %a : tensor<f32>\n  return %0 : tensor<f32>\n}",
        "^6:8: stablehlo.remainder: of float32$",
    ),
    "recursion": (
        "func.func @main(%a: tensor<f32>) -> tensor<f32> {\n"
        "  %0 = call @f(%a) : (tensor<f32>) -> tensor<f32>\n  return %0 : tensor<f32>\n}\n"
        "func.func private @f(%a: tensor<f32>) -> tensor<f32> {\n"
        "  %0 = call @f(%a) : (tensor<f32>) -> tensor<f32>\n  return %0 : tensor<f32>\n}",
        "6:8: func.call: f calls itself",
    ),
    "no body": (
        "func.func @main(%a: tensor<f32>) -> tensor<f32> {\n"
        "  %0 = call @f(%a) : (tensor<f32>) -> tensor<f32>\n  return %0 : tensor<f32>\n}\n"
        "func.func private @f(%a: tensor<f32>) -> tensor<f32>\n",
        "2:8: func.call: f has no body",
    ),
    "elements elsewhere": (
        main("%r = stablehlo.constant dense_resource<x> : tensor<4xf32>", "4xf32"),
        "3:10: stablehlo.constant: its elements are not in the text",
    ),
    "no main": ("func.func @other() {\n  return\n}", "expected a function main, found other"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_module_without_an_image_is_refused_by_op_and_place(name: str) -> None:
    text, message = REFUSED[name]
    with pytest.raises(UnsupportedError, match=message):
        from_stablehlo(text)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("module {\n  %0 = stablehlo.foo\n}", (2, 8), "'stablehlo.foo' is unknown"),
        (main("%r = stablehlo.add %a, %b : tensor<f32>"), (3, 24), "undeclared SSA value"),
        (
            main('%r = "stablehlo.abs"(%a) : (tensor<4xf32>) -> tensor<f32>', "f32", ARGUMENT),
            (3, 10),
            "must have the same shape and base type",
        ),
        ("hello", (1, 1), "'hello' is unknown"),
    ],
)
def test_text_that_is_no_module_has_the_diagnostic_of_mlir(
    text: str, place: tuple[int, int], message: str
) -> None:
    with pytest.raises(MalformedError, match=message) as caught:
        from_stablehlo(text)
    assert (caught.value.line, caught.value.column) == place


def test_a_module_has_the_slots_of_its_arguments() -> None:
    text = main(
        "%r = stablehlo.subtract %c, %a : tensor<2xi8>",
        "2xi8",
        "%a: tensor<2xi8>, %b: tensor<3xf32>, %c: tensor<2xi8>",
    )
    root = from_stablehlo(text)
    assert {slot: u.shape for slot, u in slots_of(root).items()} == {0: (2,), 2: (2,)}
    assert evaluate(root, {0: np.int8([1, 2]), 2: np.int8([7, 9])}).tolist() == [6, 7]
