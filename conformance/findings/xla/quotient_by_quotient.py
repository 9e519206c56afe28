# x / (y / z) is computed as (x * z) / y, which overflows.
# Class A, fused against split; ordinary values; algebra. Wrong in jaxlib 0.10.2 (2026-11-24).
# By hand: 1e30 / 1e20 is 1e10, and 1e20 by that is 1e10; 1e20 * 1e20 is infinite as a float32.
import jax
import numpy as np


def f(x, y):
    return x / (y / x)


arguments = [np.float32(1e20), np.float32(1e30)]
got = np.asarray(jax.jit(f)(*arguments))
with jax.disable_jit():
    split = np.asarray(f(*arguments))
print(got, "split:", split)
raise SystemExit(int(got.tobytes() != split.tobytes()))
