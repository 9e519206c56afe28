"""Modules for runtimes of StableHLO: of one program, or of several, which are compiled together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from uop.conformance.adapters.backend import Inputs
from uop.conformance.adapters.stablehlo.flat import Flat, FlatTensor, function, module
from uop.conformance.adapters.stablehlo.write import FlatBuilder
from uop.conformance.adapters.walk import build, values_of
from uop.interpreter.numeric.storage import STORED, Array, from_bits, to_bits
from uop.spec.dtype import DType, dtypes
from uop.spec.registry import Shape
from uop.spec.uop import UOp


class PortableBuilder(FlatBuilder):
    """Narrow floats enter and leave as their bits: runtimes and numpy do not share all of them."""

    def param(self, slot: int, dtype: DType, shape: Shape) -> FlatTensor:
        return self.bitcast(super().param(slot, carrier(dtype), shape), dtype, shape)

    def carried(self, x: FlatTensor) -> FlatTensor:
        return self.bitcast(x, carrier(x.dtype), x.shape)


@dataclass(frozen=True, slots=True)
class Portable:
    """A program whose narrow floats enter and leave as their bits."""

    flat: Flat
    slots: tuple[int, ...]
    outputs: tuple[FlatTensor, ...]

    def arguments(self, inputs: Inputs) -> list[Array]:
        """The arguments of its function."""
        arrays = [inputs[slot] for slot in self.slots]
        return [a if carrier(STORED[a.dtype]) is STORED[a.dtype] else to_bits(a) for a in arrays]

    def results(self, arrays: Iterable[Array]) -> tuple[Array, ...]:
        """Its outputs, from the results of its function."""
        return tuple(_restored(a, t) for a, t in zip(arrays, self.outputs, strict=True))


def portable(root: UOp) -> Portable:
    """A program for a runtime; UnsupportedError if it has no image."""
    builder = PortableBuilder()
    outputs = build(values_of(root), builder)
    flat = builder.program([builder.carried(t) for t in outputs])
    return Portable(flat, tuple(sorted(builder.inputs)), tuple(outputs))


def joined(programs: Sequence[Portable]) -> str:
    """One module that calls each program; arguments and results of all follow each other."""
    functions, takes, calls, results, types = [], [], [], [], []
    for k, flat in enumerate(program.flat for program in programs):
        functions.append(flat.function(f"private @program{k}"))
        names = [f"%in{k}_{n}" for n in range(len(flat.inputs))]
        given = [t.type for t in flat.inputs]
        gives = [t.type for t in flat.outputs]
        takes += [f"{name}: {type}" for name, type in zip(names, given, strict=True)]
        left = f"%out{k}:{len(gives)} = " if gives else ""
        kind = f"({', '.join(given)}) -> ({', '.join(gives)})"
        calls.append(f"{left}call @program{k}({', '.join(names)}) : {kind}")
        results += [f"%out{k}#{n}" for n in range(len(gives))]
        types += gives
    main = function(f"@main({', '.join(takes)})", calls, ", ".join(results), types)
    return module([*functions, main])


def carrier(dtype: DType) -> DType:
    """The dtype in which values of a dtype enter and leave a module."""
    narrow = dtype.is_float and dtype.itemsize < 4
    return {1: dtypes.uint8, 2: dtypes.uint16}[dtype.itemsize] if narrow else dtype


def _restored(a: Array, t: FlatTensor) -> Array:
    a = np.asarray(a).reshape(t.shape)
    return a if carrier(t.dtype) is t.dtype else from_bits(a, t.dtype)
