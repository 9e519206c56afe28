# exp(x) / exp(y) is computed as exp(x - y).
# Class A, fused against split; ordinary values; algebra. Wrong in jaxlib 0.10.2 (2026-11-24).
# By hand: exp(1000) is infinite as a float32, and infinity by infinity is NaN.
import jax
import numpy as np
from jax import lax


def f(x, y):
    return lax.exp(x) / lax.exp(y)


arguments = [np.float32(1000), np.float32(999)]
got = np.asarray(jax.jit(f)(*arguments))
with jax.disable_jit():
    split = np.asarray(f(*arguments))
print(got, "split:", split)
raise SystemExit(int(got.tobytes() != split.tobytes()))
