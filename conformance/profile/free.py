"""The probes without a knob: the spec gives no value or leaves bits open."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import inf

from uop.conformance.profile.points import cast_to, folded
from uop.conformance.profile.probe import Bits, Probe, Row, Witness, elementwise, row, whole
from uop.spec.args import FlipArg
from uop.spec.dtype import FLOATS, dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const

F32, I32 = dtypes.float32, dtypes.int32
LOWEST, HIGHEST = -(2**31), 2**31 - 1
CANONICAL = Bits(0x7FC00000)
"""The float32 NaN of RISC-V, Wasm and CUDA's documents; x86 generates the negative one."""
NEGATIVE = Bits(0xFFC00000)
ALL_ONES = Bits(0x7FFFFFFF)
EVEN = 2.0**24

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


@cache
def free_points() -> tuple[Probe, ...]:
    return (
        Probe("NaN payload", _payload()),
        Probe("copied signalling NaN", _copies()),
        Probe("NaN of two NaNs", (_two_nans(),)),
        Probe("sign of a made NaN", _made()),
        Probe("MAX of two zeros", (_zeros(),)),
        Probe("order of a sum", (_order(),)),
        Probe("shift count out of range", _shifts()),
        Probe("float to int out of range", _casts()),
        Probe("division by zero", _divisions()),
    )


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


def _two_nans() -> Witness:
    first, second = Bits(0x7FC00001), Bits(0x7FC00002)
    return elementwise(
        Op.ADD,
        F32,
        row(first, second, the_first=first, the_second=second, canonical=CANONICAL),
    )


def _made() -> tuple[Witness, ...]:
    words = {"plus": CANONICAL, "minus": NEGATIVE, "all_ones": ALL_ONES}
    return (
        elementwise(Op.ADD, F32, row(inf, -inf, **words)),
        elementwise(Op.MUL, F32, row(inf, 0.0, **words)),
        elementwise(Op.SQRT, F32, row(-1.0, **words)),
    )


def _zeros() -> Witness:
    words = {"plus": 0.0, "minus": -0.0}
    return elementwise(Op.MAX, F32, row(0.0, -0.0, **words), row(-0.0, 0.0, **words))


def _order() -> Witness:
    words = {"left to right": EVEN, "in pairs": EVEN + 2, "right to left, or wider": EVEN + 4}
    return whole(folded(Op.ADD), F32, row(EVEN, 1.0, 1.0, 1.0, **words))


def _shifts() -> tuple[Witness, ...]:
    """Shift counts of at least the width, and negative ones."""
    return (
        elementwise(
            Op.SHL,
            I32,
            row(1, 32, shifted_out=0, modulo_the_width=1),
            row(1, 33, shifted_out=0, modulo_the_width=2),
            row(1, -1, shifted_out=0, modulo_the_width=LOWEST),
        ),
        elementwise(
            Op.SHR,
            I32,
            row(-8, 32, shifted_out=-1, modulo_the_width=-8, zero=0),
            row(-8, 33, shifted_out=-1, modulo_the_width=-4, zero=0),
        ),
        elementwise(Op.SHL, dtypes.uint8, row(1, 8, shifted_out=0, modulo_the_width=1)),
    )


def _casts() -> tuple[Witness, ...]:
    wrapped = 3 * 10**9 - 2**32
    return (
        elementwise(
            cast_to(I32),
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
        replace(elementwise(op, I32, Row((7, 0), words)), ended="traps")
        for op, words in ((Op.IDIV, quotient), (Op.MOD, rest))
    )
