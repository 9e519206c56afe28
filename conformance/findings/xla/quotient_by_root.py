# x / sqrt(y) is computed as x * rsqrt(y), which rounds three times.
# Class A, fused against split; ordinary values; algebra. Wrong in jaxlib 0.10.2 (2026-11-24).
# Known: openxla/xla#40844.
# By hand: sqrt(33**2) = 33 and 33 / 33 = 1 need no rounding. 1 / 33 does, and 33 times that
# misses 1.
import jax
import numpy as np
from jax import lax


def f(x, y):
    return x / lax.sqrt(y)


arguments = [np.float32(33), np.float32(33 * 33)]
got = np.asarray(jax.jit(f)(*arguments))
with jax.disable_jit():
    split = np.asarray(f(*arguments))
print(got, "split:", split)
raise SystemExit(int(got.tobytes() != split.tobytes()))
