# (a / b) / (c / d) is computed as (a * d) / (b * c), which is NaN.
# Class A, fused against split; ordinary values; algebra. Wrong in jaxlib 0.10.2 (2026-11-24).
# By hand: 1e30 / 1e20 = 1e10, and 1e20 / 1e30 = 1e-10: about 1e20. Both products, 1e60 and 1e40,
# are infinite as float32.
import jax
import numpy as np


def f(x, y):
    return (x / y) / (y / x)


arguments = [np.float32(1e30), np.float32(1e20)]
got = np.asarray(jax.jit(f)(*arguments))
with jax.disable_jit():
    split = np.asarray(f(*arguments))
print(got, "split:", split)
raise SystemExit(int(got.tobytes() != split.tobytes()))
