"""The probes of the knobs: programs that show each choice that a profile may declare."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from math import inf

import numpy as np

from uop.conformance.profile.probe import NAN, Probe, Witness, elementwise, row, whole
from uop.interpreter.numeric.storage import np_dtype
from uop.spec.args import DTypeArg, PadArg, ReduceArg
from uop.spec.dtype import DType, dtypes
from uop.spec.latitude import OPS_OF
from uop.spec.ops.names import FLOOR_DIVISIONS, Op
from uop.spec.uop import UOp, const, dims, param

F16, BF16, F32, F64 = dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64
FLOATS = (F32, F64, F16, BF16)
INTS = (dtypes.int8, dtypes.int32, dtypes.int64)
EVEN = 2.0**24
"""Above this, only even integers are float32 values."""
SIDE = 16
"""Rows and columns of the matrices."""

ADD, SUB, MUL = (partial(UOp, op) for op in (Op.ADD, Op.SUB, Op.MUL))


@cache
def knob_points() -> tuple[Probe, ...]:
    """The probes of all knobs, in the order of the profile fields."""
    return (
        _max_nan(),
        _cmp_nan(),
        *_contract(),
        *_reassociate(),
        *(_ftz(dtype) for dtype in (F16, BF16, F32, F64)),
        _fp8_saturate(),
        *_decomposed(),
        _wmma(),
        _int_div_traps(),
        _int_div(),
        _excess_precision(F16, 2.0**11, 2.0**-10),
        _excess_precision(BF16, 2.0**8, 2.0**-7),
        _pad_fill(),
        *_algebra(),
    )


def _max_nan() -> Probe:
    rows = (
        row(NAN, 1.0, propagate=NAN, number=1.0),
        row(1.0, NAN, propagate=NAN, number=1.0),
        row(NAN, -inf, propagate=NAN, number=-inf),
    )
    return Probe(
        "max_nan",
        (
            *(elementwise(Op.MAX, dtype, *rows) for dtype in FLOATS),
            elementwise(Op.MIN, F32, *rows),
            *(whole(folded(op), F32, one) for op in (Op.MAX, Op.MIN) for one in rows),
        ),
        "max_nan",
        {"propagate": "propagate", "number": "number"},
        "either",
    )


def _cmp_nan() -> Probe:
    rows = [row(*ab, ieee=False, decomposed=True) for ab in ((NAN, 1.0), (1.0, NAN), (NAN, NAN))]
    return Probe(
        "cmp_nan",
        tuple(elementwise(op, F32, *rows) for op in (Op.CMPGE, Op.CMPLE)),
        "cmp_nan",
        {"ieee": "ieee", "decomposed": "either"},
        "either",
    )


def _contract() -> Iterator[Probe]:
    """0.1, which is 0.1 + e/10 in the dtype, times 10 is 1 + e, which rounds to 1."""
    by_op: dict[Op, list[Witness]] = {op: [] for op in OPS_OF["contract"]}
    for dtype, e in ((F32, 2.0**-26), (F64, 2.0**-54)):
        minus = row(0.1, 10.0, -1.0, rounded_twice=0.0, rounded_once=e)
        plus = row(0.1, 10.0, 1.0, rounded_twice=0.0, rounded_once=e)
        turned = row(0.1, 10.0, 1.0, rounded_twice=0.0, rounded_once=-e)
        by_op[Op.ADD].append(elementwise(lambda a, b, c: ADD(MUL(a, b), c), dtype, minus))
        by_op[Op.SUB] += [
            elementwise(lambda a, b, c: SUB(MUL(a, b), c), dtype, plus),
            elementwise(lambda a, b, c: SUB(c, MUL(a, b)), dtype, turned),
        ]
        by_op[Op.MULACC].append(elementwise(Op.MULACC, dtype, minus))
    for op, witnesses in by_op.items():
        yield _member("contract", op.name, "rounded twice", "rounded once", witnesses)


def _reassociate() -> Iterator[Probe]:
    one, many, big = const(1, F32), const(1e8, F32), const(2.0**100, F32)
    sums = [
        elementwise(lambda a: SUB(ADD(a, many), many), F32, row(1.0, in_order=0.0, regrouped=1.0)),
        elementwise(
            lambda a, b, c: ADD(ADD(a, b), c),
            F32,
            row(EVEN, 1.0, 1.0, in_order=EVEN, regrouped=EVEN + 2),
        ),
        elementwise(
            lambda a, b, c: ADD(a, ADD(b, c)),
            F32,
            row(1.0, 1.0, EVEN, in_order=EVEN, regrouped=EVEN + 2),
        ),
        elementwise(
            lambda a: ADD(ADD(a, one), one), F32, row(EVEN, in_order=EVEN, regrouped=EVEN + 2)
        ),
        elementwise(
            lambda a, b: ADD(ADD(a, one), b), F32, row(EVEN, -EVEN, in_order=0.0, regrouped=1.0)
        ),
    ]
    products = [
        elementwise(
            lambda a, b: MUL(MUL(a, big), b),
            F32,
            row(2.0**100, 2.0**-100, in_order=inf, regrouped=2.0**100),
        ),
        elementwise(
            lambda a, b: MUL(a, MUL(b, big)),
            F32,
            row(2.0**-100, 2.0**100, in_order=inf, regrouped=2.0**100),
        ),
    ]
    for op, witnesses in ((Op.ADD, sums), (Op.MUL, products)):
        yield _member("reassociate", op.name, "in order", "regrouped", witnesses)


def _ftz(dtype: DType) -> Probe:
    """A subnormal operand, a subnormal result, and both."""
    least = 2.0 ** (1 - dtype.format.bias)
    witnesses = [
        elementwise(
            MUL,
            dtype,
            row(least / 2, 2.0, kept=least, flushed=0.0),
            row(least, 0.5, kept=least / 2, flushed=0.0),
        ),
        elementwise(ADD, dtype, row(least / 2, least / 4, kept=least * 3 / 4, flushed=0.0)),
        elementwise(Op.CMPLT, dtype, row(0.0, least / 2, kept=True, flushed=False)),
    ]
    return _member("ftz", dtype.name, "kept", "flushed", witnesses)


def _fp8_saturate() -> Probe:
    e4m3 = [
        row(1000.0, overflows=NAN, saturates=448.0),
        row(-1000.0, overflows=NAN, saturates=-448.0),
    ]
    e5m2 = [
        row(65000.0, overflows=inf, saturates=57344.0),
        row(-inf, overflows=-inf, saturates=-57344.0),
    ]
    witnesses = [
        *(elementwise(cast_to(dtypes.fp8e4m3), source, *e4m3) for source in (F32, F16)),
        elementwise(cast_to(dtypes.fp8e5m2), F32, *e5m2),
    ]
    declares = {"overflows": "false", "saturates": "true"}
    return Probe("fp8_saturate", tuple(witnesses), "fp8_saturate", declares, "")


def _decomposed() -> tuple[Probe, Probe]:
    roots = elementwise(Op.SQRT, F32, row(-0.0, own=-0.0, decomposed=0.0))
    powers = elementwise(
        Op.POW,
        F32,
        row(-2.0, 3.0, own=-8.0, decomposed=NAN),
        row(1.0, NAN, own=1.0, decomposed=NAN),
        row(NAN, 0.0, own=1.0, decomposed=NAN),
    )
    return (
        _member("decomposed", "SQRT", "own", "decomposed", [roots]),
        _member("decomposed", "POW", "own", "decomposed", [powers]),
    )


def _wmma() -> Probe:
    """Each sum has one nonzero product, which is exact in float32."""
    witnesses: list[Witness] = []
    for value in (1 + 2.0**-12, 1 + 2.0**-17):
        a, b = (np.zeros((SIDE, SIDE), np_dtype(F32)) for _ in range(2))
        a[:, 0], b[0, :] = value, 1.0
        x, y = param(0, (SIDE, SIDE, 1), F32), param(1, (1, SIDE, SIDE), F32)
        root = UOp(Op.REDUCE, MUL(x, y), arg=ReduceArg(Op.ADD, (1,)))
        inputs = {0: a.reshape(x.shape), 1: b.reshape(y.shape)}
        witnesses.append(Witness(root, inputs, ({"exact": value, "fewer bits": 1.0},)))
    return _allowed("wmma", "exact", "fewer bits", witnesses)


def _int_div_traps() -> Probe:
    witnesses = [
        replace(elementwise(op, dtypes.int32, row(1, 0)), ended="traps", otherwise="goes on")
        for op in FLOOR_DIVISIONS
    ]
    return _allowed("int_div_traps", "goes on", "traps", witnesses)


def _int_div() -> Probe:
    two, four = const(2, dtypes.int32), const(4, dtypes.int32)
    quotients = (row(-7, 2, floor=-4, trunc=-3), row(7, -2, floor=-4, trunc=-3))
    rests = (row(-7, 2, floor=1, trunc=-1), row(7, -2, floor=-1, trunc=1))
    witnesses = [elementwise(Op.IDIV, dtype, *quotients) for dtype in INTS]
    witnesses += [elementwise(Op.MOD, dtype, *rests) for dtype in INTS]
    witnesses += [
        elementwise(lambda a: UOp(Op.IDIV, a, two), dtypes.int32, row(-7, floor=-4, trunc=-3)),
        elementwise(lambda a: UOp(Op.MOD, a, four), dtypes.int32, row(-7, floor=1, trunc=-3)),
    ]
    return Probe("int_div", tuple(witnesses), "int_div", {"floor": "floor", "trunc": "trunc"}, "")


def _excess_precision(dtype: DType, even: float, e: float) -> Probe:
    """Sums and products that need more bits than the dtype has, read in a wider dtype."""
    sums = row(even, 1.0, rounded=even, unrounded=even + 1)
    squares = row(1 + e, 1 + e, rounded=1 + 2 * e, unrounded=1 + 2 * e + e**2)
    differs = row(even, 1.0, rounded=False, unrounded=True)
    witnesses = [
        elementwise(lambda a, b: cast_to(F32)(ADD(a, b)), dtype, sums),
        elementwise(lambda a, b: cast_to(F32)(MUL(a, b)), dtype, squares),
        elementwise(lambda a, b: UOp(Op.CMPNE, ADD(a, b), a), dtype, differs),
    ]
    return _member("excess_precision", dtype.name, "rounded", "unrounded", witnesses)


def _pad_fill() -> Probe:
    witnesses = []
    for dtype in (dtypes.int32, F32):
        one = const(1, dtype)
        witnesses += [
            whole(lambda t: folded(Op.MUL)(_padded(t)), dtype, row(3, 5, invalid=15, zero=0)),
            whole(lambda t: folded(Op.MAX)(_padded(t)), dtype, row(-3, -5, invalid=-3, zero=0)),
            whole(
                lambda t, one=one: folded(Op.ADD)(ADD(_padded(t), one)),  # type: ignore[misc]
                dtype,
                row(3, 5, invalid=10, zero=12),
            ),
        ]
    return Probe(
        "pad_fill", tuple(witnesses), "pad_fill", {"invalid": "invalid", "zero": "zero"}, ""
    )


def _algebra() -> Iterator[Probe]:
    zero = const(0.0, F32)
    nothing = (row(inf, computed=NAN, folded=0.0), row(NAN, computed=NAN, folded=0.0))
    one = (row(0.0, computed=NAN, folded=1.0), row(inf, computed=NAN, folded=1.0))
    minus = row(-1.0, computed=-0.0, folded=0.0)
    by_law = {
        Op.MUL: [elementwise(lambda a: MUL(a, zero), F32, *nothing, minus)],
        Op.SUB: [
            elementwise(lambda a: SUB(a, a), F32, *nothing),
            elementwise(lambda a: ADD(a, UOp(Op.NEG, a)), F32, *nothing),
        ],
        Op.DIV: [elementwise(lambda a: UOp(Op.DIV, a, a), F32, *one)],
    }
    for op, witnesses in by_law.items():
        yield _member("algebra", op.name, "computed", "folded", witnesses)


def _allowed(knob: str, strict: str, free: str, witnesses: list[Witness]) -> Probe:
    """A probe of a bool knob."""
    return Probe(knob, tuple(witnesses), knob, {strict: "false", free: "true"}, "true")


def _member(knob: str, member: str, strict: str, free: str, witnesses: list[Witness]) -> Probe:
    """A probe of one member of a set knob."""
    return Probe(f"{knob} {member}", tuple(witnesses), knob, {strict: "", free: member}, member)


def folded(op: Op) -> Callable[[UOp], UOp]:
    """A builder that folds all elements of a vector with an op."""
    return partial(UOp, Op.REDUCE, arg=ReduceArg(op, (0,)))


def _padded(t: UOp) -> UOp:
    return UOp(Op.PAD, t, dims((1,)), dims((t.shape[0] + 2,)), arg=PadArg())


def cast_to(dtype: DType) -> Callable[[UOp], UOp]:
    return partial(UOp, Op.CAST, arg=DTypeArg(dtype))
