# pow(exp(x), y) is computed as exp(x * y), though exp overflows.
# Class A, fused against split; ordinary values; algebra. Wrong in jaxlib 0.10.2 (2026-11-24).
# By hand: exp(100) = 2.7e43 is infinite as a float32, and so is its root.
import jax
import numpy as np
from jax import lax


def f(x):
    return lax.pow(lax.exp(x), np.float32(0.5))


arguments = [np.float32(100)]
got = np.asarray(jax.jit(f)(*arguments))
with jax.disable_jit():
    split = np.asarray(f(*arguments))
print(got, "split:", split)
raise SystemExit(int(got.tobytes() != split.tobytes()))
