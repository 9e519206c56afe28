"""The flat IR: a list of ops, each of which is one op of StableHLO, and its two textual forms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from uop.interpreter.numeric.storage import Array, to_bits
from uop.spec.args import Device
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.registry import Shape

NAMES: dict[DType, str] = {
    dtypes.bool: "i1",
    **{getattr(dtypes, f"int{n}"): f"i{n}" for n in (8, 16, 32, 64)},
    **{getattr(dtypes, f"uint{n}"): f"ui{n}" for n in (8, 16, 32, 64)},
    **{dtypes.float16: "f16", dtypes.bfloat16: "bf16", dtypes.float32: "f32"},
    **{dtypes.float64: "f64", dtypes.fp8e4m3: "f8E4M3FN", dtypes.fp8e5m2: "f8E5M2"},
    dtypes.index: "i64",
}
"""The element types of StableHLO; an index is an integer of 64 bits there."""


@dataclass(frozen=True, slots=True)
class FlatTensor:
    """A value: its number, dtype, shape and device."""

    number: int
    dtype: DType
    shape: Shape
    device: Device = None

    @property
    def type(self) -> str:
        """Its type in MLIR."""
        if self.dtype not in NAMES:
            raise UnsupportedError(f"StableHLO has no {self.dtype.name}")
        return f"tensor<{''.join(f'{n}x' for n in self.shape)}{NAMES[self.dtype]}>"

    @property
    def facts(self) -> str:
        loc = "" if self.device is None else f", loc=({self.device})"
        shape = list(self.shape)
        return f"[rank=({len(shape)}), shape=({shape}), dtype=({self.dtype.name}){loc}]"


@dataclass(frozen=True, slots=True)
class FlatOp:
    """An op of StableHLO by its name, with the texts of its attributes."""

    name: str
    inputs: tuple[FlatTensor, ...]
    output: FlatTensor
    attributes: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        """`t3: [...] = TanhOp(t2)`."""
        words = [f"t{i.number}" for i in self.inputs]
        words += [f"{key}={text}" for key, text in self.attributes]
        kind = "".join(part.capitalize() for part in self.name.split("_"))
        return f"t{self.output.number}: {self.output.facts} = {kind}Op({', '.join(words)})"

    def mlir(self) -> str:
        """The op in the syntax of MLIR."""
        names = [f"%{i.number}" for i in self.inputs]
        types = ", ".join(i.type for i in self.inputs)
        result, has = self.output.type, dict(self.attributes)
        start = f"%{self.output.number} = "
        if self.name == "constant":
            return f"{start}stablehlo.constant dense<{has['data']}> : {result}"
        if self.name == "reduce":
            by = f"({names[0]} init: {names[1]}) applies stablehlo.{has['body']} across"
            return f"{start}stablehlo.reduce{by} dimensions = {has['dims']} : ({types}) -> {result}"
        if self.name == "gather":
            inside = ", ".join(f"{key} = {text}" for key, text in self.attributes)
            of = ", ".join(names)
            return f'{start}"stablehlo.gather"({of}) <{{{inside}}}> : ({types}) -> {result}'
        if self.name == "compare":
            words = [has["direction"], *names, has["type"]]
        elif self.name == "slice":
            words = [f"{names[0]} {has['bounds']}"]
        else:
            words = [*names, *(f"{key} = {text}" for key, text in self.attributes)]
        same = not self.attributes and all(i.type == result for i in self.inputs)
        kind = result if same else f"({types}) -> {result}"
        if self.name == "select":
            kind = f"{self.inputs[0].type}, {result}"
        return f"{start}stablehlo.{self.name} {', '.join(words)} : {kind}"


@dataclass(frozen=True, slots=True)
class Flat:
    """A program of flat ops, in the order in which they run."""

    inputs: tuple[FlatTensor, ...]
    ops: tuple[FlatOp, ...]
    outputs: tuple[FlatTensor, ...]

    def __str__(self) -> str:
        lines = ["Main Function:", "inputs:"]
        lines += [f"    t{t.number}: {t.facts}" for t in self.inputs]
        lines += [str(op) for op in self.ops]
        return "\n".join(
            [*lines, "outputs:", *(f"    t{t.number}: {t.facts}" for t in self.outputs)]
        )

    def mlir(self) -> str:
        """A module of StableHLO, whose `main` has the inputs and outputs of the program."""
        return module([self.function("@main")])

    def function(self, name: str) -> str:
        """The function of that name in the syntax of MLIR."""
        takes = ", ".join(f"%{t.number}: {t.type}" for t in self.inputs)
        named = ", ".join(f"%{t.number}" for t in self.outputs)
        lines = [op.mlir() for op in self.ops]
        return function(f"{name}({takes})", lines, named, [t.type for t in self.outputs])


def module(functions: Iterable[str]) -> str:
    """A module of functions."""
    return "module {\n" + "".join(functions) + "}\n"


def function(head: str, lines: Sequence[str], results: str, types: Sequence[str]) -> str:
    """A function from its name and parameters, its ops, the names and types of its results."""
    gives = f" -> ({', '.join(types)})" if types else ""
    end = f"return {results} : {', '.join(types)}" if types else "return"
    body = "".join(f"    {line}\n" for line in (*lines, end))
    return f"  func.func {head}{gives} {{\n{body}  }}\n"


def literal(value: Array, dtype: DType) -> str:
    """A constant in MLIR: numbers, and the bits of a float whose short form is another number."""
    if value.shape == ():
        return _number(value, dtype)
    return f"[{', '.join(literal(np.asarray(v), dtype) for v in value)}]"


def _number(v: Array, dtype: DType) -> str:
    if dtype is dtypes.bool:
        return str(bool(v)).lower()
    if not dtype.is_float:
        return str(int(v))
    text = f"{float(v):e}"
    if np.isfinite(float(v)) and to_bits(np.asarray(float(text)).astype(v.dtype)) == to_bits(
        np.asarray(v)
    ):
        return text
    return f"0x{int(to_bits(np.asarray(v))):0{2 * dtype.itemsize}X}"


def numbers(values: Iterable[int]) -> str:
    """`[1, 2]`."""
    return f"[{', '.join(map(str, values))}]"


def bounds(start: Sequence[int], stop: Sequence[int]) -> str:
    """`[0:2, 1:3]`."""
    return f"[{', '.join(f'{a}:{b}' for a, b in zip(start, stop, strict=True))}]"
