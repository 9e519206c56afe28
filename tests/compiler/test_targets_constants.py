"""Ops on literals: what the device's compiler folds is what it computes at run time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from uop.compiler.runtime.device import Launch
from uop.compiler.runtime.opencl import OpenCLDevice
from uop.compiler.targets.cstyle import Operation, c_type, literal, spell
from uop.compiler.targets.opencl import OPENCL
from uop.spec.dtype import DTYPES, DType, dtypes
from uop.spec.ops.names import Op

SPECIAL = [0.0, 1.0, 0.5, 1.5, 300.0, 1e-40, 1e30, math.inf]
VALUES = [*SPECIAL, *(-v for v in SPECIAL), math.nan]
CASTS = [d for d in DTYPES.values() if d not in (dtypes.index, dtypes.void)]
FUNCTIONS = (Op.EXP2, Op.LOG2, Op.SIN, Op.SQRT)


def unary(dtype: DType) -> list[tuple[Op, DType]]:
    exact = (Op.TRUNC, Op.RECIP, Op.NEG, *FUNCTIONS)
    return [*((op, dtype) for op in exact), *((Op.CAST, to) for to in CASTS)]


def statement(op: Op, dtype: DType, of: DType, values: tuple[float, ...], at: int) -> str:
    """Store the op on literals, then on the same values read from memory."""
    literals = tuple(literal(of, of.encode(v)) for v in values)
    reads = [f"volatile {c_type(of)} v{i} = {text};" for i, text in enumerate(literals)]
    names = tuple(f"v{i}" for i in range(len(values)))
    folded, run = (
        f"{c_type(dtype)} {name} = {spell(Operation(op, dtype, (of,) * len(values), args))};"
        for name, args in (("folded", literals), ("run", names))
    )
    stores = f"out[{2 * at}] = (f64)folded; out[{2 * at + 1}] = (f64)run;"
    return f"{{ {' '.join(reads)} {folded} {run} {stores} }}"


@pytest.mark.parametrize("of", [dtypes.float32, dtypes.float64], ids=lambda d: d.name)
def test_literals_fold_to_what_is_computed(opencl: OpenCLDevice, of: DType) -> None:
    cases: list[tuple[Op, DType, tuple[float, ...]]]
    cases = [(op, dtype, (v,)) for op, dtype in unary(of) for v in VALUES]
    powers = [(a, b) for a in VALUES for b in VALUES if abs(a) != 300]
    cases += [(op, of, (a, b)) for op in (Op.POW, Op.MAX) for a, b in powers]
    statements = [statement(op, to, of, values, i) for i, (op, to, values) in enumerate(cases)]
    kernels = [
        "\n".join([f"kernel void k{i}(global f64* out) {{", *statements[i : i + 100], "}"])
        for i in range(0, len(statements), 100)
    ]
    launches = [Launch(f"k{i}", (0,), (1,), (1,)) for i in range(0, len(statements), 100)]
    built = opencl.build(OPENCL.source(kernels))
    (out,) = opencl.run(built, launches, [np.zeros(2 * len(cases))])
    folded, run = out[::2], out[1::2]
    # Of a function with a budget only the special results are fixed.
    free = np.array([op in (*FUNCTIONS, Op.POW) for op, _, _ in cases])
    fixed = ~free | ~np.isfinite(run) | (run == 0)
    np.testing.assert_array_equal(folded[fixed], run[fixed])
    ordinary = fixed & ~np.isnan(run)
    np.testing.assert_array_equal(np.signbit(folded[ordinary]), np.signbit(run[ordinary]))


@pytest.mark.parametrize("of", [dtypes.float32, dtypes.float64], ids=lambda d: d.name)
def test_truncating_a_literal_nan_gives_nan(opencl: OpenCLDevice, of: DType) -> None:
    """Workaround: PoCL folds its own trunc of a literal NaN into an undefined value."""
    name = c_type(of)
    truncated = spell(Operation(Op.TRUNC, of, (of,), (literal(of, of.format.nan_bits),)))
    kernel = f"kernel void k(global {name}* out) {{ out[get_global_id(0)] = {truncated}; }}"
    built = opencl.build(OPENCL.source([kernel]))
    (out,) = opencl.run(built, [Launch("k", (0,), (1,), (64,))], [np.zeros(64, of.name)])
    assert np.isnan(out).all()
