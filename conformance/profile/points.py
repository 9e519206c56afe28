"""The probes: programs that show each choice of a profile, and some that no profile declares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from math import inf

import numpy as np

from uop.conformance.profile.probe import NAN, Bits, Probe, Row, Witness, elementwise, row, whole
from uop.interpreter.numeric.storage import np_dtype
from uop.spec.args import DTypeArg, FlipArg, PadArg, ReduceArg
from uop.spec.dtype import FLOATS, DType, dtypes
from uop.spec.latitude import OPS_OF
from uop.spec.ops.names import FLOOR_DIVISIONS, Op
from uop.spec.uop import UOp, const, dims, param

F16, BF16, F32, F64 = dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64
WIDE = (F32, F64, F16, BF16)
INTS = (dtypes.int8, dtypes.int32, dtypes.int64)
EVEN = 2.0**24
"""Above this, only even integers are float32 values."""
SIDE = 16
"""Rows and columns of the matrices."""
LOWEST, HIGHEST = -(2**31), 2**31 - 1
CANONICAL = Bits(0x7FC00000)
"""The float32 NaN of RISC-V, Wasm and CUDA's documents; x86 generates the negative one."""
NEGATIVE = Bits(0xFFC00000)
ALL_ONES = Bits(0x7FFFFFFF)

FREE = {
    "NaN payload": "The bits of a NaN that passes through an op are free.",
    "copied signalling NaN": "Its bits or its quiet form, unless a profile has snan=kept.",
    "NaN of two NaNs": "A NaN, with any bits.",
    "sign of a made NaN": "The sign and the other bits of a NaN made of numbers are free.",
    "MAX of two zeros": "Either of the two.",
    "order of a sum": "Any order and grouping, and a wider accumulator.",
    "shift count out of range": "Anything: it has no value.",
    "float to int out of range": "Anything: it has no value.",
    "division by zero": "Anything: it has no value.",
}
"""The rule of the spec for each probe."""

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
    witnesses = [
        *(elementwise(Op.MAX, dtype, *rows) for dtype in WIDE),
        elementwise(Op.MIN, F32, *rows),
        *(whole(folded(op), F32, one) for op in (Op.MAX, Op.MIN) for one in rows),
    ]
    return _knob("max_nan", {"propagate": "propagate", "number": "number"}, "either", witnesses)


def _cmp_nan() -> Probe:
    rows = [row(*ab, ieee=False, decomposed=True) for ab in ((NAN, 1.0), (1.0, NAN), (NAN, NAN))]
    witnesses = [elementwise(op, F32, *rows) for op in (Op.CMPGE, Op.CMPLE)]
    return _knob("cmp_nan", {"ieee": "ieee", "decomposed": "either"}, "either", witnesses)


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
    rounded = partial(row, in_order=EVEN, regrouped=EVEN + 2)
    too_large = partial(row, in_order=inf, regrouped=2.0**100)
    by_op: dict[Op, list[tuple[Callable[..., UOp], Row]]] = {
        Op.ADD: [
            (lambda a: SUB(ADD(a, many), many), row(1.0, in_order=0.0, regrouped=1.0)),
            (lambda a, b, c: ADD(ADD(a, b), c), rounded(EVEN, 1.0, 1.0)),
            (lambda a, b, c: ADD(a, ADD(b, c)), rounded(1.0, 1.0, EVEN)),
            (lambda a: ADD(ADD(a, one), one), rounded(EVEN)),
            (lambda a, b: ADD(ADD(a, one), b), row(EVEN, -EVEN, in_order=0.0, regrouped=1.0)),
        ],
        Op.MUL: [
            (lambda a, b: MUL(MUL(a, big), b), too_large(2.0**100, 2.0**-100)),
            (lambda a, b: MUL(a, MUL(b, big)), too_large(2.0**-100, 2.0**100)),
        ],
    }
    for op, rows in by_op.items():
        witnesses = [elementwise(build, F32, one) for build, one in rows]
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
    return _knob("fp8_saturate", {"overflows": "false", "saturates": "true"}, "", witnesses)


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
    return _knob("wmma", {"exact": "false", "fewer bits": "true"}, "true", witnesses)


def _int_div_traps() -> Probe:
    witnesses = [
        replace(elementwise(op, dtypes.int32, row(1, 0)), ended="traps", otherwise="goes on")
        for op in FLOOR_DIVISIONS
    ]
    return _knob("int_div_traps", {"goes on": "false", "traps": "true"}, "true", witnesses)


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
    return _knob("int_div", {"floor": "floor", "trunc": "trunc"}, "", witnesses)


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
    return _knob("pad_fill", {"invalid": "invalid", "zero": "zero"}, "", witnesses)


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


def _knob(knob: str, declares: dict[str, str], free: str, witnesses: list[Witness]) -> Probe:
    """A probe of a knob that is one word."""
    return Probe(knob, tuple(witnesses), knob, declares, free)


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


@cache
def free_points() -> tuple[Probe, ...]:
    """The probes without a knob, in the order of FREE."""
    first, second = Bits(0x7FC00001), Bits(0x7FC00002)
    words = {"the_first": first, "the_second": second, "canonical": CANONICAL}
    zeros = {"plus": 0.0, "minus": -0.0}
    orders = {"left to right": EVEN, "in pairs": EVEN + 2, "right to left, or wider": EVEN + 4}
    shown = (
        _payload(),
        _copies(),
        (elementwise(Op.ADD, F32, row(first, second, **words)),),
        _made(),
        (elementwise(Op.MAX, F32, row(0.0, -0.0, **zeros), row(-0.0, 0.0, **zeros)),),
        (whole(folded(Op.ADD), F32, row(EVEN, 1.0, 1.0, 1.0, **orders)),),
        _shifts(),
        _casts(),
        _divisions(),
    )
    return tuple(map(Probe, FREE, shown))


def _payload() -> tuple[Witness, ...]:
    """A quiet NaN with a payload, and a signalling one."""
    quiet, signalling = Bits(0x7FC01234), Bits(0x7F801234)
    others = {"canonical": CANONICAL, "all ones": ALL_ONES, "negative": NEGATIVE}
    rows = [row(nan, 1.0, kept=quiet, **others) for nan in (quiet, signalling)]
    return tuple(elementwise(op, F32, *rows) for op in (Op.ADD, Op.MUL))


def _copies() -> tuple[Witness, ...]:
    """A movement and a choice in each float that has signalling NaNs."""
    return tuple(
        elementwise(build, dtype, row(signalling, kept=signalling, quiet=quiet))
        for dtype in (d for d in FLOATS if d.format.has_inf)
        for least in [dtype.format.exponent_mask | 1]
        for signalling, quiet in [(Bits(least), Bits(least | dtype.format.nan_bits))]
        for build in (_moved, _chosen)
    )


def _moved(x: UOp) -> UOp:
    return UOp(Op.FLIP, x, arg=FlipArg((True,)))


def _chosen(x: UOp) -> UOp:
    return UOp(Op.WHERE, UOp(Op.CMPNE, x, x), x, const(0.0, x.dtype))


def _made() -> tuple[Witness, ...]:
    words = {"plus": CANONICAL, "minus": NEGATIVE, "all_ones": ALL_ONES}
    return (
        elementwise(Op.ADD, F32, row(inf, -inf, **words)),
        elementwise(Op.MUL, F32, row(inf, 0.0, **words)),
        elementwise(Op.SQRT, F32, row(-1.0, **words)),
    )


def _shifts() -> tuple[Witness, ...]:
    """Shift counts of at least the width, and negative ones."""
    return (
        elementwise(
            Op.SHL,
            dtypes.int32,
            row(1, 32, shifted_out=0, modulo_the_width=1),
            row(1, 33, shifted_out=0, modulo_the_width=2),
            row(1, -1, shifted_out=0, modulo_the_width=LOWEST),
        ),
        elementwise(
            Op.SHR,
            dtypes.int32,
            row(-8, 32, shifted_out=-1, modulo_the_width=-8, zero=0),
            row(-8, 33, shifted_out=-1, modulo_the_width=-4, zero=0),
        ),
        elementwise(Op.SHL, dtypes.uint8, row(1, 8, shifted_out=0, modulo_the_width=1)),
    )


def _casts() -> tuple[Witness, ...]:
    wrapped = 3 * 10**9 - 2**32
    return (
        elementwise(
            cast_to(dtypes.int32),
            F32,
            row(3e9, saturates=HIGHEST, lowest=LOWEST, wraps=wrapped, zero=0),
            row(inf, saturates=HIGHEST, lowest=LOWEST, wraps=-1, zero=0),
            row(float("nan"), lowest=LOWEST, zero=0, saturates=HIGHEST),
        ),
        elementwise(
            cast_to(dtypes.int8),
            F32,
            row(300.0, saturates=127, lowest=-128, wraps=44, zero=0),
            row(-300.0, saturates=-128, wraps=-44, zero=0),
        ),
        elementwise(
            cast_to(dtypes.int64), F32, row(1e20, saturates=2**63 - 1, lowest=-(2**63), zero=0)
        ),
    )


def _divisions() -> tuple[Witness, ...]:
    quotient = {"zero": 0, "all ones": -1, "highest": HIGHEST, "the dividend": 7}
    rest = {"zero": 0, "the dividend": 7, "all ones": -1}
    return tuple(
        replace(elementwise(op, dtypes.int32, Row((7, 0), words)), ended="traps")
        for op, words in ((Op.IDIV, quotient), (Op.MOD, rest))
    )
