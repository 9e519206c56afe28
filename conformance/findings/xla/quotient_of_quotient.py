# (x / y) / z is computed as x / (y * z), which overflows.
# Class A, fused against split; ordinary values; algebra. Wrong in jaxlib 0.10.2 (2026-11-24).
# By hand: 1e20 / 1e20 is 1, by 1e20 that is 1e-20; 1e20 * 1e20 is infinite as a float32.
import jax
import numpy as np


def f(x, y):
    return x / y / y


arguments = [np.float32(1e20), np.float32(1e20)]
got = np.asarray(jax.jit(f)(*arguments))
with jax.disable_jit():
    split = np.asarray(f(*arguments))
print(got, "split:", split)
raise SystemExit(int(got.tobytes() != split.tobytes()))
