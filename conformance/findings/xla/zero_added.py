# x + 0 is folded to x, also where x is -0.
# Class A, fused against split; special values; algebra. Wrong in jaxlib 0.10.2 (2026-11-24).
# By hand: -0 + 0 is +0 by IEEE 754-2019 6.3.
import jax
import numpy as np


def f(x):
    return x + np.float32(0)


arguments = [np.float32(-0.0)]
got = np.asarray(jax.jit(f)(*arguments))
with jax.disable_jit():
    split = np.asarray(f(*arguments))
print(got, "split:", split)
raise SystemExit(int(got.tobytes() != split.tobytes()))
