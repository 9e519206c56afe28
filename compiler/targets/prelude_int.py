"""C helpers for integers: division without undefined behaviour, MAX, MIN, and THREEFRY.

C leaves x / 0 and MIN / -1 undefined, and a compiler may move a division out of its guard. So the
divisor itself is replaced before the division. `opaque` is a function of the dialect.
"""

from __future__ import annotations

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


TEXT = "\n\n".join(
    [_for_width(text, bits) for bits in (8, 16, 32, 64) for text in (SIGNED, UNSIGNED)]
    + [_for_width(EXTREMA, bits) for bits in (32, 64)]
    + [THREEFRY]
)
