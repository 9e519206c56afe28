# (x + c) - c is folded to x, without the rounding of the sum.
# Class A, fused against split; ordinary values; algebra. Wrong in jaxlib 0.10.2 (2026-11-24).
# By hand: 3 + 1e20 is 1e20 as a float32, whose neighbours are 2**43 apart, and minus 1e20 that is
# 0.
import jax
import numpy as np


def f(x):
    return x + np.float32(1e20) - np.float32(1e20)


arguments = [np.float32(3)]
got = np.asarray(jax.jit(f)(*arguments))
with jax.disable_jit():
    split = np.asarray(f(*arguments))
print(got, "split:", split)
raise SystemExit(int(got.tobytes() != split.tobytes()))
