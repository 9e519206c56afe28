"""Generate level graph: arithmetic on bits and on scaled numbers, in the ways that it is written.

- quantised: numbers of 8 and 16 bits with a scale and a zero point; sums that saturate, quotients
  that round, high halves of products, two numbers in a byte.
- bit-tricks: bits counted, turned, moved and selected by masks.
- float-bits: signs, exponents and orders of floats from their bits; rounding by large numbers.
- normalised: rows and columns less their largest or their mean, in proportion to their sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial, reduce

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.graph import pairs
from uop.conformance.suite.levels.group import Counts, Group
from uop.conformance.suite.values import draw_within, sample
from uop.conformance.suite.vocabulary import Vocabulary
from uop.interpreter.numeric.storage import Array
from uop.spec.args import PadFill
from uop.spec.dtype import FLOATS, INTS, dtypes
from uop.spec.graph import slots_of
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const

IN_SMOKE = {"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"}
IN_SMOKE |= {"float16", "bfloat16", "float32", "float64"}
COUNTS: Counts = (1, 2, 8)
SHORT = tuple(d for d in INTS if d.bits < 32)
WITH_FIELDS = tuple(d for d in FLOATS if d.bits > 8)
SHIFT = 3
"""By so many bits a scaled number is shifted."""
STRIPES = ((1, 0x5555555555555555), (2, 0x3333333333333333), (4, 0x0F0F0F0F0F0F0F0F))
"""The bits of each second group of so many."""
SIDE = 4
NORMALISED = (
    dtypes.int8,
    dtypes.uint32,
    dtypes.int32,
    dtypes.float16,
    dtypes.float32,
    dtypes.float64,
)

KINDS = pairs.Kinds()


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    return KINDS.groups(vocabulary, IN_SMOKE)


def _clamped(u: UOp, low: int, high: int) -> UOp:
    return UOp(Op.MIN, UOp(Op.MAX, u, const(low, u.dtype)), const(high, u.dtype))


def _with(op: Op, u: UOp, number: float) -> UOp:
    """Apply an op to a value and a number."""
    return UOp(op, u, const(number if u.dtype.is_float else int(number), u.dtype))


def _is_negative(u: UOp) -> UOp:
    return _with(Op.CMPLT, u, 0)


def _joined(parts: list[UOp]) -> UOp:
    """Return the bits of all parts in one number."""
    return reduce(partial(UOp, Op.OR), parts)


@KINDS.add("quantised", (2, 2, 8), SHORT)
def _quantised(p: pairs.Plan) -> Iterator[UOp]:
    """Convert to the dtype by a scale and a zero point, with sums and products before."""
    low, high, wide, real = int(p.dtype.min), int(p.dtype.max), dtypes.int32, dtypes.float32
    x, y = p.inputs(2)
    zero, other = (low + high + 1) // 2 + p.choices.between(3, 9), p.choices.between(3, 9)
    a, b = nodes.cast(x, wide), nodes.cast(y, wide)
    left, right = _with(Op.SUB, a, zero), _with(Op.SUB, b, other)

    def narrow(u: UOp) -> UOp:
        return nodes.cast(_clamped(u, low, high), p.dtype)

    scaled = _with(Op.MUL, left, p.choices.pick((3, 5, 7)))
    half, count = 1 << (SHIFT - 1), const(SHIFT, wide)
    up = UOp(Op.SHR, _with(Op.ADD, scaled, half), count)
    nudge = UOp(Op.WHERE, _is_negative(scaled), const(1 - half, wide), const(half, wide))
    away = _with(Op.CDIV, UOp(Op.ADD, scaled, nudge), 2 * half)
    sign = _with(Op.SHR, scaled, 31)
    symmetric = UOp(Op.SHR, UOp(Op.ADD, _with(Op.ADD, scaled, half), sign), count)
    rest = _with(Op.AND, scaled, 2 * half - 1)
    limit = UOp(Op.ADD, nodes.cast(_is_negative(scaled), wide), const(half - 1, wide))
    beyond = nodes.cast(UOp(Op.CMPLT, limit, rest), wide)
    by_rest = UOp(Op.ADD, UOp(Op.SHR, scaled, count), beyond)
    for rounded in (UOp(Op.SHR, scaled, count), up, away, symmetric, by_rest):
        yield rounded
        yield narrow(_with(Op.ADD, rounded, other))
        yield narrow(_with(Op.ADD, _clamped(rounded, low // 2, high // 2), other))
        yield _with(Op.ADD, narrow(rounded), 1)
    for scale in (0.5, 0.25, 1.5):
        value = _with(Op.MUL, nodes.cast(left, real), scale)
        whole = UOp(Op.TRUNC, value)
        side = UOp(Op.WHERE, _is_negative(value), const(-0.5, real), const(0.5, real))
        yield narrow(_with(Op.ADD, nodes.cast(UOp(Op.TRUNC, UOp(Op.ADD, value, side)), wide), 3))
        raised = _with(Op.ADD, value, 0.5)
        down = UOp(Op.TRUNC, raised)
        floor = UOp(Op.SUB, down, nodes.cast(UOp(Op.CMPLT, raised, down), real))
        is_tie = UOp(Op.CMPEQ, floor, raised)
        is_odd = UOp(Op.CMPNE, UOp(Op.TRUNC, _with(Op.MUL, floor, 0.5)), _with(Op.MUL, floor, 0.5))
        even = UOp(Op.SUB, floor, nodes.cast(UOp(Op.AND, is_tie, is_odd), real))
        for rounded in (whole, floor, even, _with(Op.SUB, _with(Op.ADD, value, 3 << 22), 3 << 22)):
            yield rounded
            yield narrow(nodes.cast(_with(Op.ADD, rounded, other), wide))
            yield nodes.cast(_clamped(_with(Op.ADD, rounded, other), low, high), p.dtype)
    for value in (UOp(Op.ADD, a, b), UOp(Op.SUB, a, b), UOp(Op.MUL, a, b), UOp(Op.SUB, b, a)):
        yield narrow(value)
        yield nodes.cast(value, p.dtype)
        yield nodes.cast(_with(Op.SHR, value, 1), p.dtype)
        yield nodes.cast(_with(Op.SHR, _with(Op.ADD, value, 1), 1), p.dtype)
        yield nodes.cast(_with(Op.SHR, value, p.dtype.bits), p.dtype)
        yield nodes.cast(_with(Op.SHR, value, p.dtype.bits - 1), p.dtype)
        yield nodes.cast(_with(Op.MIN, value, high), p.dtype)
        yield nodes.cast(_with(Op.MAX, value, low), p.dtype)
    yield narrow(UOp(Op.NEG, a))
    yield narrow(UOp(Op.MAX, a, UOp(Op.NEG, a)))
    yield narrow(_with(Op.SHL, a, 2))
    yield nodes.cast(UOp(Op.MAX, UOp(Op.SUB, a, b), UOp(Op.SUB, b, a)), p.dtype)
    total, apart = UOp(Op.ADD, x, y), UOp(Op.SUB, x, y)
    yield UOp(Op.WHERE, UOp(Op.CMPLT, total, x), p.const(high), total)
    yield UOp(Op.WHERE, UOp(Op.CMPLT, x, apart), p.const(low), apart)
    signs = UOp(Op.AND, UOp(Op.XOR, x, total), UOp(Op.XOR, y, total))
    end = _with(Op.ADD, _with(Op.SHR, x, p.dtype.bits - 1), high) if p.dtype.is_signed else x
    yield UOp(Op.WHERE, _with(Op.CMPNE, _with(Op.SHR, signs, p.dtype.bits - 1), 0), end, total)
    yield UOp(Op.ADD, x, UOp(Op.MIN, y, _with(Op.XOR, x, high)))
    turned = nodes.bitcast(x, next(d for d in INTS if d.bits == p.dtype.bits and d is not p.dtype))
    lowest = 1 << (p.dtype.bits - 1)
    flipped = UOp(
        Op.XOR, turned, const(-lowest if turned.dtype.is_signed else lowest, turned.dtype)
    )
    yield flipped
    yield UOp(Op.ADD, nodes.cast(flipped, wide), a)
    yield _with(Op.MAX, x, zero)
    yield UOp(Op.WHERE, _is_negative(left), UOp(Op.SHR, left, count), left)
    lanes = nodes.reshape(left, (13, 5)), nodes.reshape(right, (13, 5))
    yield nodes.fold(Op.ADD, UOp(Op.MUL, *lanes), (1,))
    first, second = nodes.reshape(a, (13, 5)), nodes.reshape(b, (13, 5))
    sums = [nodes.fold(Op.ADD, u, (1,)) for u in (UOp(Op.MUL, first, second), first, second)]
    corrected = UOp(Op.SUB, sums[0], _with(Op.MUL, sums[1], other))
    corrected = UOp(Op.SUB, corrected, _with(Op.MUL, sums[2], zero))
    yield _with(Op.ADD, corrected, 5 * zero * other)
    yield narrow(_with(Op.SHR, corrected, 4))
    yield nodes.cast(_with(Op.IDIV, sums[1], 5), p.dtype)
    for start in (left, a):
        padded = nodes.pad(nodes.reshape(start, (13, 5)), (1, 1), (14, 7), PadFill.ZERO)
        yield nodes.fold(Op.ADD, _with(Op.ADD, padded, zero), (1,))
        yield nodes.fold(Op.MAX, padded, (0,))
    byte = dtypes.uint8
    four = nodes.bitcast(x, byte) if p.dtype.bits == 8 else nodes.cast(x, byte)
    halves = _with(Op.AND, four, 15), _with(Op.SHR, four, 4)
    for half_byte in halves:
        yield half_byte
        as_signed = nodes.bitcast(_with(Op.SHL, half_byte, 4), dtypes.int8)
        yield _with(Op.SHR, as_signed, 4)
        yield _with(Op.SUB, _with(Op.XOR, nodes.cast(half_byte, dtypes.int8), 8), 8)
    yield nodes.permute(UOp(Op.STACK, *halves), (1, 0))
    yield UOp(Op.OR, _with(Op.SHL, halves[0], 4), halves[1])


@KINDS.add("bit-tricks", COUNTS, INTS)
def _bit_tricks(p: pairs.Plan) -> Iterator[UOp]:
    """Count, turn, move and select bits."""
    x, y = p.inputs(2)
    bits = p.dtype.bits
    unsigned = next(d for d in INTS if d.bits == bits and not d.is_signed)
    u, v = (nodes.bitcast(a, unsigned) if p.dtype.is_signed else a for a in (x, y))
    everything = (1 << bits) - 1
    width, one = bits - 1, p.const(1)
    ones = p.const(-1 if p.dtype.is_signed else everything)
    by = p.choices.between(1, bits - 1)
    for count in (1, by, bits // 2, width):
        for value in (u, x):
            left, right = _with(Op.SHL, value, count), _with(Op.SHR, value, bits - count)
            yield from (UOp(op, left, right) for op in (Op.OR, Op.ADD, Op.XOR))
        yield UOp(Op.OR, _with(Op.SHL, u, count), _with(Op.SHR, v, bits - count))
        yield _with(Op.SHR, _with(Op.SHL, x, count), count)
        yield _with(Op.SHR, _with(Op.SHL, u, count), count)
    amount = _with(Op.AND, v, width)
    rest = _with(Op.AND, UOp(Op.SUB, const(bits, unsigned), amount), width)
    yield UOp(Op.OR, UOp(Op.SHL, u, amount), UOp(Op.SHR, u, rest))
    yield UOp(Op.SHR, x, _with(Op.AND, y, width))
    yield UOp(Op.SHL, one, _with(Op.AND, y, width))
    yield _with(Op.SUB, UOp(Op.SHL, one, _with(Op.AND, y, width)), 1)
    counted = turned = u
    for by, stripes in STRIPES:
        second = stripes & everything
        high = _with(Op.AND, _with(Op.SHR, counted, by), second)
        counted = UOp(Op.ADD, _with(Op.AND, counted, second), high)
        low = _with(Op.SHL, _with(Op.AND, turned, second), by)
        turned = UOp(Op.OR, _with(Op.AND, _with(Op.SHR, turned, by), second), low)
        yield from (counted, turned)
    times = _with(Op.MUL, counted, 0x0101010101010101 & everything)
    yield _with(Op.SHR, times, bits - 8)
    if bits > 8:
        size = bits // 8
        split = nodes.reshape(nodes.bitcast(u, dtypes.uint8), (pairs.LENGTH, size))
        back = nodes.flip(split, (False, True))
        yield nodes.bitcast(nodes.reshape(back, (pairs.LENGTH * size,)), unsigned)
        parts = [
            _with(Op.SHL, _with(Op.AND, _with(Op.SHR, u, 8 * k), 255), bits - 8 - 8 * k)
            for k in range(size)
        ]
        yield _joined(parts)
        bytes_ = [nodes.shrink(split, (0, k), (pairs.LENGTH, 1)) for k in range(size)]
        wide = [nodes.cast(nodes.reshape(b, (pairs.LENGTH,)), unsigned) for b in bytes_]
        yield _joined([_with(Op.SHL, b, 8 * k) for k, b in enumerate(wide)])
        yield nodes.cast(nodes.cast(x, dtypes.int8), p.dtype)
        yield nodes.cast(nodes.cast(x, dtypes.uint8), p.dtype)
    smeared = u
    for count in (1, 2, 4, 8, 16, 32):
        if count < bits:
            smeared = UOp(Op.OR, smeared, _with(Op.SHR, smeared, count))
    yield smeared
    yield UOp(Op.SUB, smeared, _with(Op.SHR, smeared, 1))
    less, opposite = _with(Op.SUB, x, 1), UOp(Op.NEG, x)
    lowest = UOp(Op.AND, x, opposite)
    yield from (lowest, UOp(Op.AND, x, less), UOp(Op.XOR, x, less), UOp(Op.OR, x, less))
    yield UOp(Op.AND, UOp(Op.XOR, x, ones), less)
    yield UOp(Op.OR, x, opposite)
    yield UOp(Op.ADD, x, lowest)
    for tested in (UOp(Op.AND, x, less), lowest, UOp(Op.AND, x, _with(Op.ADD, x, 1))):
        yield _with(Op.CMPEQ, tested, 0)
        yield UOp(Op.AND, _with(Op.CMPEQ, tested, 0), _with(Op.CMPNE, x, 0))
        yield UOp(Op.CMPEQ, tested, x)
    yield _with(Op.SHR, UOp(Op.OR, u, UOp(Op.NEG, u)), width)
    is_less = nodes.cast(UOp(Op.CMPLT, x, y), p.dtype)
    mask = UOp(Op.NEG, is_less)
    yield mask
    yield UOp(Op.XOR, y, UOp(Op.AND, UOp(Op.XOR, x, y), mask))
    yield UOp(Op.XOR, x, UOp(Op.AND, UOp(Op.XOR, x, y), mask))
    yield UOp(Op.OR, UOp(Op.AND, x, mask), UOp(Op.AND, y, UOp(Op.XOR, mask, ones)))
    yield UOp(Op.AND, UOp(Op.SUB, x, y), mask)
    yield UOp(Op.AND, x, _with(Op.SUB, is_less, 1))
    yield UOp(Op.MUL, x, is_less)
    sign = _with(Op.SHR, x, width)
    yield UOp(Op.SUB, UOp(Op.XOR, x, sign), sign)
    yield UOp(Op.XOR, UOp(Op.ADD, x, sign), sign)
    yield UOp(Op.OR, sign, _with(Op.SHR, UOp(Op.NEG, u) if not p.dtype.is_signed else opposite, 1))
    yield _with(Op.OR, sign, 1)
    total = UOp(Op.ADD, x, y)
    both = UOp(Op.AND, UOp(Op.XOR, x, total), UOp(Op.XOR, y, total))
    yield _is_negative(both) if p.dtype.is_signed else _with(Op.SHR, both, width)
    carries = UOp(
        Op.OR,
        UOp(Op.AND, u, v),
        UOp(Op.AND, UOp(Op.OR, u, v), UOp(Op.XOR, UOp(Op.ADD, u, v), const(everything, unsigned))),
    )
    yield _with(Op.SHR, carries, width)
    yield nodes.cast(UOp(Op.CMPLT, UOp(Op.ADD, u, v), u), unsigned)
    yield nodes.cast(UOp(Op.CMPLT, u, v), unsigned)
    half = bits // 2
    low_mask = (1 << half) - 1
    a, b = ((_with(Op.AND, w, low_mask), _with(Op.SHR, w, half)) for w in (u, v))
    cross = UOp(Op.ADD, UOp(Op.MUL, a[1], b[0]), _with(Op.SHR, UOp(Op.MUL, a[0], b[0]), half))
    more = UOp(Op.ADD, UOp(Op.MUL, a[0], b[1]), _with(Op.AND, cross, low_mask))
    top = UOp(Op.ADD, UOp(Op.MUL, a[1], b[1]), _with(Op.SHR, cross, half))
    yield UOp(Op.ADD, top, _with(Op.SHR, more, half))
    start = p.choices.between(1, half - 1)
    for field in (_with(Op.SHL, x, start), _with(Op.SHL, u, start)):
        yield _with(Op.SHR, field, half)
    field_mask = (1 << half) - 1 << start
    kept = _with(Op.AND, u, everything ^ field_mask)
    placed = _with(Op.AND, _with(Op.SHL, v, start), field_mask)
    yield from (UOp(op, kept, placed) for op in (Op.OR, Op.ADD, Op.XOR))
    yield UOp(Op.XOR, u, UOp(Op.AND, UOp(Op.XOR, u, v), const(field_mask, unsigned)))
    yield _with(Op.AND, _with(Op.SHR, x, start), low_mask >> 1)
    yield _with(Op.SHR, _with(Op.AND, x, low_mask << start - 1 & int(p.dtype.max)), start)
    yield _with(Op.XOR, u, 1 << width)
    yield UOp(Op.CMPLT, *(_with(Op.XOR, w, 1 << width) for w in (u, v)))
    yield UOp(Op.CMPLT, UOp(Op.SUB, u, const(5, unsigned)), const(100, unsigned))
    yield UOp(Op.CMPLT, u, v)
    yield UOp(Op.CMPLT, nodes.cast(UOp(Op.CMPLT, u, v), unsigned), _with(Op.AND, u, 1))
    folded = nodes.reshape(u, (13, 5))
    yield nodes.fold(Op.ADD, _with(Op.AND, folded, 1), (1,))
    yield nodes.fold(Op.ADD, _with(Op.SHL, _with(Op.AND, folded, 1), 3), (1,))
    yield nodes.fold(Op.MAX, _with(Op.AND, folded, 6), (1,))


@KINDS.add("float-bits", COUNTS, WITH_FIELDS)
def _float_bits(p: pairs.Plan) -> Iterator[UOp]:
    """Read and change the fields of floats, and order and round floats by them."""
    x, y = p.inputs(2)
    form, bits = p.dtype.format, p.dtype.bits
    signed, unsigned = (
        next(d for d in INTS if d.bits == bits and d.is_signed is is_signed)
        for is_signed in (True, False)
    )
    u, v, i, j = (nodes.bitcast(a, d) for d in (unsigned, signed) for a in (x, y))
    sign, rest = form.sign_bit, form.sign_bit - 1
    exponent = form.exponent_mask

    def back(value: UOp) -> UOp:
        return nodes.bitcast(value, p.dtype)

    positive, own = _with(Op.AND, u, rest), _with(Op.AND, u, sign)
    yield from (back(positive), back(_with(Op.XOR, u, sign)), back(_with(Op.OR, u, sign)))
    yield back(UOp(Op.OR, positive, _with(Op.AND, v, sign)))
    yield back(UOp(Op.XOR, u, _with(Op.AND, v, sign)))
    yield back(UOp(Op.XOR, positive, own))
    yield back(UOp(Op.OR, own, const(p.dtype.encode(1), unsigned)))
    yield UOp(Op.MUL, x, back(UOp(Op.OR, own, const(p.dtype.encode(1), unsigned))))
    for value in (u, i):
        yield _with(Op.SHR, value, bits - 1)
        field = _with(Op.SHR, value, form.fraction_bits)
        yield field
        yield _with(Op.SUB, _with(Op.AND, field, exponent >> form.fraction_bits), form.bias)
    yield _with(Op.AND, u, form.fraction_mask)
    yield back(_with(Op.OR, _with(Op.AND, u, form.fraction_mask), p.dtype.encode(1)))
    yield back(_with(Op.AND, u, sign | exponent))
    yield back(_with(Op.ADD, u, 1))
    yield back(_with(Op.SUB, i, 1))
    yield back(_with(Op.ADD, u, 1 << form.fraction_bits))
    for count in (1, form.fraction_bits // 2 + 1):
        cut = form.sign_bit * 2 - (1 << count)
        yield back(_with(Op.AND, u, cut))
        odd = _with(Op.AND, _with(Op.SHR, u, count), 1)
        raised = UOp(Op.ADD, _with(Op.ADD, u, (1 << count - 1) - 1), odd)
        yield back(_with(Op.AND, raised, cut))
        yield back(_with(Op.AND, _with(Op.ADD, u, 1 << count - 1), cut))
    mask = _with(Op.SHR, i, bits - 1)
    keys = [UOp(Op.XOR, k, _with(Op.AND, _with(Op.SHR, k, bits - 1), rest)) for k in (i, j)]
    yield UOp(Op.CMPLT, *keys)
    yield UOp(Op.CMPEQ, *keys)
    yield back(UOp(Op.MAX, i, j))
    yield back(UOp(Op.MIN, u, v))
    for op in (Op.CMPLT, Op.CMPEQ, Op.CMPNE, Op.CMPLE):
        yield from (UOp(op, a, b) for a, b in ((i, j), (u, v), (x, y)))
    yield UOp(Op.WHERE, UOp(Op.CMPLT, i, const(0, signed)), UOp(Op.NEG, x), x)
    yield UOp(Op.XOR, i, mask)
    infinity = const(exponent, unsigned)
    yield from (UOp(op, positive, infinity) for op in (Op.CMPLT, Op.CMPEQ, Op.CMPNE))
    yield UOp(Op.CMPLT, infinity, positive)
    yield _with(Op.CMPEQ, positive, 0)
    yield _with(Op.CMPEQ, u, 0)
    yield _with(Op.CMPEQ, u, sign)
    is_nan, is_finite = UOp(Op.CMPNE, x, x), _with(Op.CMPEQ, UOp(Op.SUB, x, x), 0)
    yield from (is_nan, is_finite, UOp(Op.NOT, is_nan), _with(Op.CMPEQ, x, 0))
    yield UOp(Op.WHERE, is_nan, p.const(0), x)
    yield UOp(Op.WHERE, is_finite, x, y)
    yield UOp(Op.OR, is_nan, UOp(Op.CMPNE, y, y))
    yield UOp(Op.OR, UOp(Op.CMPLT, x, y), UOp(Op.OR, is_nan, UOp(Op.CMPEQ, x, y)))
    yield UOp(Op.NOT, UOp(Op.CMPLT, x, y))
    yield UOp(Op.NOT, UOp(Op.OR, UOp(Op.CMPLT, x, y), UOp(Op.CMPLT, y, x)))
    magic = 1.5 * 2.0**form.fraction_bits
    yield _with(Op.SUB, _with(Op.ADD, x, magic), magic)
    yield _with(Op.SUB, nodes.bitcast(_with(Op.ADD, x, magic), signed), p.dtype.encode(magic))
    whole = UOp(Op.TRUNC, x)
    down = UOp(Op.SUB, whole, nodes.cast(UOp(Op.CMPLT, x, whole), p.dtype))
    yield from (whole, down, UOp(Op.SUB, x, down), UOp(Op.SUB, x, whole))
    yield UOp(Op.ADD, whole, nodes.cast(UOp(Op.CMPLT, whole, x), p.dtype))
    yield UOp(Op.WHERE, UOp(Op.CMPLT, x, whole), _with(Op.SUB, whole, 1), whole)
    yield UOp(Op.TRUNC, _with(Op.ADD, x, 0.5))
    yield from (_with(op, x, n) for op in (Op.MUL, Op.ADD, Op.SUB) for n in (0.0, -0.0, 1.0, -1.0))
    yield from (UOp(Op.SUB, const(n, p.dtype), x) for n in (0.0, -0.0))
    positive_part = UOp(Op.WHERE, _with(Op.CMPLT, x, 0), p.const(0), x)
    yield from (positive_part, UOp(Op.WHERE, UOp(Op.CMPLT, p.const(0), x), x, p.const(0)))
    yield UOp(Op.MUL, nodes.cast(UOp(Op.CMPLT, p.const(0), x), p.dtype), x)
    steps = (
        nodes.cast(UOp(Op.CMPLT, *pair), p.dtype) for pair in ((p.const(0), x), (x, p.const(0)))
    )
    yield UOp(Op.SUB, *steps)
    yield UOp(
        Op.WHERE,
        _with(Op.CMPLT, x, -1),
        p.const(-1),
        UOp(Op.WHERE, UOp(Op.CMPLT, p.const(1), x), p.const(1), x),
    )


def _exact(root: UOp, choices: Choices) -> list[dict[int, Array]]:
    """Return small numbers, both signs and none, of which sums and quotients by 4 are exact."""
    batches = []
    for low, high in ((-9, 9), (0, 3)):
        draw = draw_within(low, high)
        batches.append(
            {
                k: sample(
                    draw_within(0, 20) if not u.dtype.is_signed else draw, u.dtype, u.shape, choices
                )
                for k, u in slots_of(root).items()
            }
        )
    return batches


@KINDS.add("normalised", COUNTS, NORMALISED, _exact)
def _normalised(p: pairs.Plan) -> Iterator[UOp]:
    """Use the largest, the sum, the mean or the variance of rows and of columns beside elements.

    The squares have as many rows as columns, so a wrong axis has the right shape.
    """
    x, y = p.inputs(2, (SIDE, SIDE))
    low = p.const(p.dtype.min)
    for u in (x, nodes.permute(y, (1, 0))):
        for axes in ((0,), (1,), (0, 1)):
            count = SIDE ** len(axes)
            largest, least = (nodes.fold(op, u, axes) for op in (Op.MAX, Op.MIN))
            total = nodes.fold(Op.ADD, u, axes)
            yield UOp(Op.SUB, u, largest)
            yield UOp(Op.SUB, largest, least)
            yield nodes.fold(Op.ADD, UOp(Op.SUB, u, largest), axes)
            yield UOp(Op.SUB, _with(Op.MUL, u, count), total)
            yield UOp(Op.SUB, u, nodes.reshape(nodes.fold(Op.ADD, x, (1,)), (1, SIDE)))
            squares = nodes.fold(Op.ADD, UOp(Op.MUL, u, u), axes)
            yield UOp(Op.SUB, _with(Op.MUL, squares, count), UOp(Op.MUL, total, total))
            if not p.dtype.is_float:
                continue
            mean = _with(Op.MUL, total, 1 / count)
            apart = UOp(Op.SUB, u, mean)
            variance = _with(Op.MUL, nodes.fold(Op.ADD, UOp(Op.MUL, apart, apart), axes), 1 / count)
            yield from (apart, variance, nodes.fold(Op.ADD, apart, axes))
            yield UOp(Op.SUB, _with(Op.MUL, squares, 1 / count), UOp(Op.MUL, mean, mean))
            yield UOp(Op.DIV, apart, UOp(Op.SQRT, _with(Op.ADD, variance, 0.25)))
            powers = UOp(Op.EXP2, UOp(Op.SUB, u, largest))
            yield UOp(Op.DIV, powers, nodes.fold(Op.ADD, powers, axes))
            is_kept = UOp(Op.CMPLT, u, y)
            masked = UOp(Op.WHERE, is_kept, u, low)
            yield nodes.fold(Op.ADD, nodes.cast(is_kept, p.dtype), axes)
            yield UOp(Op.SUB, masked, nodes.fold(Op.MAX, masked, axes))
            weights = UOp(Op.EXP2, UOp(Op.SUB, masked, nodes.fold(Op.MAX, masked, axes)))
            yield UOp(Op.DIV, weights, nodes.fold(Op.ADD, weights, axes))
            yield UOp(Op.DIV, u, _with(Op.MAX, UOp(Op.SQRT, squares), 1))
            yield _with(Op.MUL, UOp(Op.DIV, total, p.const(count)), 2)
    inner = nodes.fold(Op.MAX, x, (1,))
    yield nodes.fold(Op.ADD, UOp(Op.SUB, inner, nodes.fold(Op.MAX, y, (0,))), (0, 1))
    is_low = UOp(Op.CMPLT, x, y)
    for chosen, none in ((x, low), (y, p.const(0)), (x, p.const(1))):
        value = UOp(Op.WHERE, is_low, chosen, none)
        yield from (nodes.fold(op, value, (1,)) for op in (Op.ADD, Op.MAX, Op.MUL))
    row, column = (nodes.shrink(y, (0, 0), shape) for shape in ((1, SIDE), (SIDE, 1)))
    for op in (Op.SUB, Op.MUL, Op.MAX):
        yield from (
            UOp(op, nodes.fold(fold, UOp(op, x, u), (k,)), u)
            for fold in (Op.ADD, Op.MAX)
            for u in (row, column)
            for k in (0, 1)
        )
