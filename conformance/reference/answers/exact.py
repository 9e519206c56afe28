"""Writes how one element of a node comes about, in exact arithmetic: `-7 / 2 = -3.5, floor -4`."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import partial

import numpy as np

from uop.interpreter.accepted.result import Accepted
from uop.interpreter.numeric.enclosure import REALS
from uop.interpreter.numeric.storage import to_bits
from uop.spec.args import ReduceArg, arg_of
from uop.spec.dtype import DType, Kind, dtypes
from uop.spec.ops.names import Op
from uop.spec.registry import identity_of
from uop.spec.uop import UOp

PRECISION, DIGITS = 256, 20
"""The bits with which a transcendental number is enclosed, and its printed decimal digits."""
MOST_TERMS = 8
"""A fold of more elements is not written out."""
PLAIN = 1 << 64
"""An integer below it is printed in decimal."""


@dataclass(frozen=True, slots=True)
class Operand:
    """One element: its exact value, None where it is not finite, and its text."""

    value: Fraction | None
    text: str
    dtype: DType
    bits: int


Write = Callable[[UOp, Sequence[Operand], str], str]
"""Writes the arithmetic of a node from its operands and its result as text."""


def arithmetic(u: UOp, element: int, accepted: Mapping[UOp, Accepted]) -> str:
    """The arithmetic of one element; empty for an op without one, or operands of several values."""
    sets = accepted[u]
    if bool(sets.any.reshape(-1)[element]) or any(s not in accepted for s in u.src):
        return ""
    result = accepted_text(sets, element)
    if u.op is Op.REDUCE and len(u.src) == 1:
        return _fold(u, element, accepted[u.src[0]], result)
    write = WRITERS.get(u.op)
    if write is None or (u.op is Op.BITCAST and u.shape != u.src[0].shape):
        return ""
    operands = [_operand(accepted[s], s.dtype, u.shape, element) for s in u.src]
    if any(x is None for x in operands):
        return ""
    return write(u, [x for x in operands if x is not None], result)


def accepted_text(sets: Accepted, element: int) -> str:
    """What is accepted for an element: one exact number, or the ends as a `.uop` file has them."""
    one = _at(sets, sets.dtype, element)
    return sets.describe(element) if one is None else one.text


def number_text(value: Fraction) -> str:
    """An exact number: a short decimal, else a hexadecimal one, else a quotient."""
    if value.denominator == 1 and abs(value) < PLAIN:
        return str(value.numerator)
    if value.denominator & (value.denominator - 1):
        return f"{value.numerator}/{value.denominator}"
    if value.denominator <= 1 << 6 and abs(value) < PLAIN:
        return str(float(value)) if Fraction(float(value)) == value else _hex(value)
    return _hex(value)


def _hex(value: Fraction) -> str:
    """A dyadic number as C writes it, with all of its digits: 0x1.8p+3."""
    whole, exponent = abs(value.numerator), 1 - value.denominator.bit_length()
    zeros = (whole & -whole).bit_length() - 1
    whole, exponent = whole >> zeros, exponent + zeros
    places = whole.bit_length() - 1
    digits = -(-places // 4)
    rest = (whole - (1 << places)) << (4 * digits - places)
    point = f".{rest:0{digits}x}" if digits else ""
    return f"{'-' * (value < 0)}0x1{point}p{exponent + places:+d}"


def _operand(sets: Accepted, dtype: DType, shape: tuple[int, ...], element: int) -> Operand | None:
    """The operand of an element; None where it may have several values."""
    places = np.arange(sets.value.data.size).reshape(sets.value.data.shape)
    flat = int(np.broadcast_to(places, shape).reshape(-1)[element])
    return _at(sets, dtype, flat)


def _at(sets: Accepted, dtype: DType, flat: int) -> Operand | None:
    if not bool(sets.single.reshape(-1)[flat]):
        return None
    stored = sets.value.data.reshape(-1)[flat : flat + 1]
    bits = int(to_bits(stored)[0])
    if dtype.is_float:
        form = dtype.format
        size = bits & ~form.sign_bit
        if size > form.max_bits:
            return Operand(None, sets.describe(flat), dtype, bits)
        value = form.finite(size) * (-1 if bits & form.sign_bit else 1)
        text = number_text(value) if size or not bits else "-0.0"
        return Operand(value, text, dtype, bits)
    if dtype is dtypes.bool:
        return Operand(Fraction(int(stored[0])), str(bool(stored[0])).lower(), dtype, bits)
    return Operand(Fraction(int(stored[0])), str(int(stored[0])), dtype, bits)


def _finished(u: UOp, said: str, exact: Fraction | None, result: str) -> str:
    """`said = exact`, and the result where the dtype does not hold the exact number."""
    if exact is None:
        return f"{said} is {result}"
    shown = f"{said} = {number_text(exact)}"
    if u.dtype.is_float:
        return f"{shown}; accepted as {u.dtype.name}: {result}"
    if number_text(exact) == result:
        return shown
    return f"{shown}, modulo 2**{u.dtype.bits} as {u.dtype.name}: {result}"


def _formula(
    text: str, of: Callable[..., Fraction | None], u: UOp, x: Sequence[Operand], result: str
) -> str:
    """Write what a function of exact numbers gives; operands but the first stand in brackets."""
    said = text.format(x[0].text, *(_bracketed(operand.text) for operand in x[1:]))
    if u.dtype is dtypes.bool and u.op is not Op.MULACC:
        return f"{said} is {result}"
    values = [operand.value for operand in x]
    return _finished(u, said, None if None in values else of(*values), result)


def _bracketed(text: str) -> str:
    return f"({text})" if text.startswith("-") else text


def _reciprocal(u: UOp, x: Sequence[Operand], result: str) -> str:
    return WRITERS[Op.DIV](u, (Operand(Fraction(1), "1", u.dtype, 0), *x), result)


def _neg(u: UOp, x: Sequence[Operand], result: str) -> str:
    a = x[0].value
    exact = None if a is None or (u.dtype.is_float and not a) else -a
    return _finished(u, f"-({x[0].text})", exact, result)


def _quotient(
    rounding: str, rounded: Callable[[Fraction], int], u: UOp, x: Sequence[Operand], result: str
) -> str:
    a, b = x[0].value, x[1].value
    if not a or not b:
        return f"{x[0].text} / {x[1].text} is {result}"
    whole = rounded(a / b)
    wrapped = "" if str(whole) == result else f", modulo 2**{u.dtype.bits}: {result}"
    said = f"{x[0].text} / {_bracketed(x[1].text)} = {number_text(a / b)}"
    return f"{said}, {rounding} {whole}{wrapped}"


def _remainder(
    rounded: Callable[[Fraction], int], u: UOp, x: Sequence[Operand], result: str
) -> str:
    a, b = x[0].value, x[1].value
    if a is None or not b:
        return f"{x[0].text} modulo {x[1].text} is {result}"
    said = f"{x[0].text} - {_bracketed(x[1].text)} * {_bracketed(str(rounded(a / b)))}"
    return _finished(u, said, a - b * rounded(a / b), result)


def _shl(u: UOp, x: Sequence[Operand], result: str) -> str:
    a, n = x[0].value, int(x[1].value or 0)
    if a is None or not 0 <= n < u.dtype.bits:
        return ""
    return _finished(u, f"{x[0].text} * 2**{n}", a * 2**n, result)


def _shr(u: UOp, x: Sequence[Operand], result: str) -> str:
    a, n = x[0].value, int(x[1].value or 0)
    if a is None or not 0 <= n < u.dtype.bits:
        return ""
    return f"{x[0].text} / 2**{n} = {number_text(a / 2**n)}, floor {result}"


def _relation(sign: str, u: UOp, x: Sequence[Operand], result: str) -> str:
    return f"{x[0].text} {sign} {x[1].text} is {result}"


def _bits(sign: str, u: UOp, x: Sequence[Operand], result: str) -> str:
    if u.dtype.kind is Kind.BOOL:
        return _relation(sign, u, x, result)
    width = u.dtype.bits // 4
    return f"0x{x[0].bits:0{width}x} {sign} 0x{x[1].bits:0{width}x} is {result}"


def _named(u: UOp, x: Sequence[Operand], result: str) -> str:
    return f"{_call(u.op, x)} is {result}"


def _call(op: Op, x: Sequence[Operand]) -> str:
    return f"{op.name.lower()}({', '.join(operand.text for operand in x)})"


def _cast(u: UOp, x: Sequence[Operand], result: str) -> str:
    (a,) = x
    if a.value is None or u.dtype is dtypes.bool:
        return f"{a.text} as {u.dtype.name} is {result}"
    if u.dtype.is_float:
        return f"{a.text} as {u.dtype.name}: {result}"
    whole = math.trunc(a.value)
    cut = f"{a.text} toward zero is {whole}" if whole != a.value else a.text
    if str(whole) == result:
        return f"{cut}, which fits {u.dtype.name}"
    wrapped = f"{cut} modulo 2**{u.dtype.bits} = {whole % (1 << u.dtype.bits)}"
    return f"{wrapped}, as {u.dtype.name}: {result}"


def _bitcast(u: UOp, x: Sequence[Operand], result: str) -> str:
    width = u.dtype.itemsize * 2
    return f"the bits 0x{x[0].bits:0{width}x} as {u.dtype.name}: {result}"


def _real(u: UOp, x: Sequence[Operand], result: str) -> str:
    said = _call(u.op, x)
    values = [operand.value for operand in x]
    if None in values or 0 in values:
        return f"{said} is {result}"
    try:
        below, _ = REALS[u.op].enclose(*(float(v) for v in values if v is not None), PRECISION)
    except (ArithmeticError, ValueError):
        return f"{said} is {result}"
    shown = Context(DIGITS).divide(Decimal(below.numerator), Decimal(below.denominator))
    # Of a power the magnitude is enclosed; the sign is that of the result.
    sign = "|" * (u.op is Op.POW)
    return f"{sign}{said}{sign} = {shown} to {DIGITS} digits; accepted as {u.dtype.name}: {result}"


def _fold(u: UOp, element: int, sets: Accepted, result: str) -> str:
    arg, shape = arg_of(u, ReduceArg), sets.value.data.shape
    places = np.arange(sets.value.data.size).reshape(shape)
    moved = np.moveaxis(places, arg.axes, range(len(arg.axes)))
    folded = moved.reshape(math.prod(shape[a] for a in arg.axes), -1)
    if len(folded) > MOST_TERMS:
        return ""
    terms = [_at(sets, u.src[0].dtype, flat) for flat in folded[:, element].tolist()]
    known = [t for t in terms if t is not None]
    if len(known) < len(terms) or not known:
        return ""
    if arg.op not in (Op.ADD, Op.MUL) or u.dtype is dtypes.bool:
        return f"{arg.op.name}({', '.join(t.text for t in known)}) is {result}"
    sign, of = ("+", operator.add) if arg.op is Op.ADD else ("*", operator.mul)
    exact: Fraction | None = Fraction(identity_of(arg.op, u.dtype))
    for t in known:
        exact = None if exact is None or t.value is None else of(exact, t.value)
    return _finished(u, f" {sign} ".join(_bracketed(t.text) for t in known), exact, result)


WRITERS: dict[Op, Write] = {
    Op.ADD: partial(_formula, "{} + {}", operator.add),
    Op.SUB: partial(_formula, "{} - {}", operator.sub),
    Op.MUL: partial(_formula, "{} * {}", operator.mul),
    Op.NEG: _neg,
    Op.IDIV: partial(_quotient, "floor", math.floor),
    Op.CDIV: partial(_quotient, "toward zero", math.trunc),
    Op.MOD: partial(_remainder, math.floor),
    Op.CMOD: partial(_remainder, math.trunc),
    Op.DIV: partial(_formula, "{} / {}", lambda a, b: a / b if b else None),
    Op.RECIP: _reciprocal,
    Op.MULACC: partial(_formula, "{} * {} + {}", lambda a, b, c: a * b + c),
    Op.SHL: _shl,
    Op.SHR: _shr,
    Op.AND: partial(_bits, "&"),
    Op.OR: partial(_bits, "|"),
    Op.XOR: partial(_bits, "^"),
    Op.CMPLT: partial(_relation, "<"),
    Op.CMPGT: partial(_relation, ">"),
    Op.CMPLE: partial(_relation, "<="),
    Op.CMPGE: partial(_relation, ">="),
    Op.CMPEQ: partial(_relation, "=="),
    Op.CMPNE: partial(_relation, "!="),
    **dict.fromkeys((Op.MAX, Op.MIN, Op.NOT, Op.TRUNC), _named),
    Op.WHERE: lambda u, x, result: f"the condition is {x[0].text}: {result}",
    Op.CAST: _cast,
    Op.BITCAST: _bitcast,
    **dict.fromkeys((Op.SQRT, Op.EXP2, Op.LOG2, Op.SIN, Op.POW), _real),
}
"""How the arithmetic of an op is written; other ops move elements or have none."""
