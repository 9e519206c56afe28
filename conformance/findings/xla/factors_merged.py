# (x * c) * d is computed as x * (c * d), which overflows.
# Class A, fused against split; ordinary values; algebra. Wrong in jaxlib 0.10.2 (2026-11-24).
# By hand: 0 * 1e30 * 1e30 is 0; c * d is infinite as a float32, and 0 times infinity is NaN.
import jax
import numpy as np


def f(x):
    return x * np.float32(1e30) * np.float32(1e30)


arguments = [np.float32(0)]
got = np.asarray(jax.jit(f)(*arguments))
with jax.disable_jit():
    split = np.asarray(f(*arguments))
print(got, "split:", split)
raise SystemExit(int(got.tobytes() != split.tobytes()))
