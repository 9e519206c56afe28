"""The prelude of a rendered source: the C helper functions that it calls.

Integers: division without undefined behaviour, MAX, MIN, and THREEFRY. C leaves x / 0 and MIN / -1
undefined, and a compiler may move a division out of its guard. So the divisor itself is replaced
before the division. `opaque` is a function of the dialect.

Floats: small floats as their bits, casts that round once, TRUNC, functions. A small float (float16,
bfloat16, fp8e4m3, fp8e5m2) is rounded from a float32. A float64 or a 64-bit integer is first
rounded to odd in float32: if it is inexact, to the neighbour with an odd last bit. With two or more
extra digits, such a value rounds as the exact one does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from uop.spec.dtype import FLOATS, INTS, DType, dtypes

SIGNED = """
FN iN floor_div_iN(iN x, iN y) {
  iN d = (iN)(y == 0 || y == -1 ? 1 : y);
  iN q = (iN)(x / d);
  iN r = (iN)(x % d);
  iN floored = (iN)(r != 0 && (r < 0) != (d < 0) ? q - 1 : q);
  return y == -1 ? (iN)opaque(0 - (uW)x) : floored;
}

FN iN floor_mod_iN(iN x, iN y) {
  iN d = (iN)(y == 0 || y == -1 ? 1 : y);
  iN r = (iN)(x % d);
  return r != 0 && (r < 0) != (d < 0) ? (iN)(r + d) : r;
}
"""

UNSIGNED = """
FN uN floor_div_uN(uN x, uN y) {
  uN d = (uN)(y == 0 ? 1 : y);
  return (uN)(x / d);
}

FN uN floor_mod_uN(uN x, uN y) {
  uN d = (uN)(y == 0 ? 1 : y);
  return (uN)(x % d);
}
"""

# Workaround complement-of-max: without inlining, no compiler combines it with its users.
EXTREMA = """
APART iN max_iN(iN x, iN y) {
  return x < y ? y : x;
}

APART iN min_iN(iN x, iN y) {
  return y < x ? y : x;
}

APART uN max_uN(uN x, uN y) {
  return x < y ? y : x;
}

APART uN min_uN(uN x, uN y) {
  return y < x ? y : x;
}
"""

THREEFRY = """
FN u32 rotate_left(u32 x, u32 r) {
  return (x << r) | (x >> (32 - r));
}

// Threefry-2x32 with 20 rounds: five groups of four, a key word added after each group.
FN u64 threefry(u64 x, u64 key) {
  u32 ks[3] = {(u32)(key >> 32), (u32)(key >> 32) ^ (u32)key ^ 0x1bd11bdau, (u32)key};
  u32 rotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  u32 x0 = (u32)x + ks[2];
  u32 x1 = (u32)(x >> 32) + ks[0];
  for (u32 i = 0; i < 5; i++) {
    for (u32 j = 0; j < 4; j++) {
      x0 += x1;
      x1 = rotate_left(x1, rotations[(i % 2) * 4 + j]) ^ x0;
    }
    x0 += ks[i % 3];
    x1 += ks[(i + 1) % 3] + i + 1;
  }
  return ((u64)x1 << 32) | x0;
}
"""


def _for_width(template: str, bits: int) -> str:
    """uW is the unsigned type in which C computes on uN: narrow ones are promoted to int."""
    # Workaround negation-of-int16.
    narrowed = template if bits < 32 else template.replace("opaque", "")
    wide = narrowed.replace("uW", f"u{max(bits, 32)}")
    return wide.replace("iN", f"i{bits}").replace("uN", f"u{bits}")


INT_HELPERS = "\n\n".join(
    [_for_width(text, bits) for bits in (8, 16, 32, 64) for text in (SIGNED, UNSIGNED)]
    + [_for_width(EXTREMA, bits) for bits in (32, 64)]
    + [THREEFRY]
)


TO_ODD = """
FN f32 f64_to_odd(f64 x) {
  f32 near = (f32)x;
  f64 back = (f64)near;
  u32 outward = (back < 0 ? -back : back) > (x < 0 ? -x : x);
  u32 odd = (f32_to_bits(near) - outward) | 1u;
  return back < x || back > x ? bits_to_f32(odd) : near;
}

// The bits below the 53 that a float64 holds are folded into its last one first.
FN f32 u64_to_odd(u64 x) {
  u64 folded = (x & ~(u64)0x7ff) | ((x & 0x7ff) != 0 ? 0x800 : 0);
  return f64_to_odd((f64)(x >> 53 != 0 ? folded : x));
}

FN f32 i64_to_odd(i64 x) {
  f32 magnitude = u64_to_odd(x < 0 ? 0 - (u64)x : (u64)x);
  return x < 0 ? -magnitude : magnitude;
}
"""

# Adding the magic number shifts the digits below the smallest subnormal step out of the
# significand, and the addition rounds them; above, a carry out of the fraction is the next
# exponent.
FROM_F32 = """
FN {unsigned} f32_to_{name}(f32 x) {{
  u32 m = f32_to_bits(x) & 0x7fffffffu;
  u32 sign = f32_to_bits(x) >> 31 << {sign_shift};
  u32 low = f32_to_bits(bits_to_f32(m) + bits_to_f32({magic:#x}u)) - {magic:#x}u;
  u32 high = ((m + {half:#x}u + ((m >> {shift}) & 1u)) >> {shift}) - {rebias:#x}u;
  u32 rounded = m < {smallest_normal:#x}u ? low : high;
  u32 bounded = rounded > {largest:#x}u ? {overflow:#x}u : rounded;
  return ({unsigned})(sign | (m > 0x7f800000u ? {nan:#x}u : bounded));
}}
"""

TO_F32 = """
FN f32 {name}_to_f32({unsigned} x) {{
  u32 m = (u32)x & {magnitude:#x}u;
  u32 sign = (u32)(x >> {sign_shift}) << 31;
  u32 ordinary = f32_to_bits(bits_to_f32(m << {shift}) * bits_to_f32({scale:#x}u));
  u32 special = 0x7f800000u | (m & {fraction:#x}u) << {shift};
  return bits_to_f32(sign | (m > {largest:#x}u ? special : ordinary));
}}
"""

# Workaround trunc-of-literal-nan: done on the bits.
TRUNC = """
FN f{bits} trunc_f{bits}(f{bits} x) {{
  u{bits} b = f{bits}_to_bits(x);
  u{bits} exponent = (b >> {fraction}) & {exponent_mask};
  u{bits} sign = b & ((u{bits})1 << {last});
  u{bits} fraction = exponent < {whole} ? ((u{bits})1 << (({whole} - exponent) & {last})) - 1 : 0;
  return bits_to_f{bits}(exponent < {bias} ? sign : b & ~fraction);
}}
"""

# The built-ins are overloaded on float and double in every dialect.
# Workaround function-of-literal-nan: a NaN does not reach them.
UNARY = """
FN {type} {name}_{type}({type} x) {{
  return x != x ? x + x : {name}(x);
}}
"""

# Workaround pow-of-signalling-nan: the comparisons with 1 and 0.
POW = """
FN {type} pow_{type}({type} x, {type} y) {{
  return x == 1 || y == 0 ? 1 : x != x || y != y ? x + y : pow(x, y);
}}
"""

# Workaround copy-or-arithmetic: apart, no compiler joins it with the arithmetic.
CHOOSE = """
APART f32 choose_f32(u8 first, f32 a, f32 b) {
  return first ? a : b;
}

APART f64 choose_f64(u8 first, f64 a, f64 b) {
  return first ? a : b;
}
"""

# Workaround integer-minus-zero: apart, no compiler joins it with a cast back.
TO_INT = """
APART {to} {source}_to_{to}({source} x) {{
  return x {above} && x < {limit} ? ({to})x : 0;
}}
"""


def f32_field(exponent: int) -> int:
    """Bits of the float32 2**exponent."""
    return (exponent + 127) << 23


def of_small(dtype: DType) -> dict[str, object]:
    """The numbers of the casts between a small float and float32."""
    form = dtype.format
    shift = 23 - form.fraction_bits
    return {
        "unsigned": f"u{dtype.bits}",
        "name": dtype.name,
        "sign_shift": dtype.bits - 1,
        "magic": f32_field(form.emin + shift),
        "half": (1 << (shift - 1)) - 1,
        "shift": shift,
        "rebias": (127 - form.bias) << form.fraction_bits,
        "smallest_normal": f32_field(form.emin),
        "largest": form.max_bits,
        "overflow": form.nan_bits if form.inf_bits is None else form.inf_bits,
        "nan": form.nan_bits,
        "magnitude": form.sign_bit - 1,
        "scale": f32_field(127 - form.bias),
        "fraction": form.fraction_mask,
    }


def _trunc(dtype: DType) -> str:
    form = dtype.format
    return TRUNC.format(
        bits=dtype.bits,
        fraction=form.fraction_bits,
        exponent_mask=(1 << form.exponent_bits) - 1,
        last=dtype.bits - 1,
        whole=form.bias + form.fraction_bits,
        bias=form.bias,
    )


def _to_int(source: DType, to: DType) -> str:
    """Give 0 for NaN and what the integer cannot hold: C leaves them undefined."""
    suffix = "f" if source is dtypes.float32 else ""
    low, high = int(to.min) - 1, int(to.max) + 1
    holds_low = abs(low).bit_length() <= source.format.precision
    above = f"> {float(low).hex()}{suffix}" if holds_low else f">= {float(low + 1).hex()}{suffix}"
    return TO_INT.format(
        to=f"{'i' if to.is_signed else 'u'}{to.bits}",
        source=f"f{source.bits}",
        above=above,
        limit=f"{float(high).hex()}{suffix}",
    )


SMALL = tuple(dtype for dtype in FLOATS if dtype.bits < 32)
_LARGE = tuple(dtype for dtype in FLOATS if dtype.bits >= 32)

FLOAT_HELPERS = "\n\n".join(
    [TO_ODD, CHOOSE]
    + [FROM_F32.format(**of_small(dtype)) for dtype in SMALL]
    + [TO_F32.format(**of_small(dtype)) for dtype in SMALL]
    + [_trunc(dtype) for dtype in _LARGE]
    + [_to_int(source, to) for source in _LARGE for to in INTS]
    + [
        UNARY.format(type=f"f{dtype.bits}", name=name)
        for dtype in _LARGE
        for name in ("exp2", "log2", "sin", "sqrt")
    ]
    + [POW.format(type=f"f{dtype.bits}") for dtype in _LARGE]
)


@dataclass(frozen=True, slots=True)
class Helper:
    """A C function of the prelude, and the names of the helpers it calls."""

    name: str
    text: str
    calls: tuple[str, ...]


def used_helpers(body: str, own: str = "") -> list[Helper]:
    """The helpers that a C text calls, directly or through others, each after those it calls; `own`
    are those that only its dialect has.
    """
    helpers = all_helpers(own)
    wanted = set(_called(body, helpers))
    for helper in reversed(helpers.values()):
        if helper.name in wanted:
            wanted.update(helper.calls)
    return [helper for helper in helpers.values() if helper.name in wanted]


@cache
def all_helpers(own: str = "") -> dict[str, Helper]:
    """The helpers of every dialect and of one, by name, each after those that it calls."""
    helpers: dict[str, Helper] = {}
    text = f"{INT_HELPERS}\n\n{FLOAT_HELPERS}\n\n{own}"
    for block in filter(None, map(str.strip, text.split("\n\n"))):
        match = re.search(r"^(?:FN|APART) [^(]*?(\w+)\(", block, re.MULTILINE)
        if match is None:
            raise ValueError(f"a prelude block without a function:\n{block}")
        helpers[match[1]] = Helper(match[1], block, tuple(_called(block, helpers)))
    return helpers


def _called(text: str, among: Iterable[str]) -> list[str]:
    names = set(re.findall(r"[A-Za-z_]\w*+(?=\()", text))
    return [name for name in among if name in names]
