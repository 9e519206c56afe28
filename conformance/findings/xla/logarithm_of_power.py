# log(pow(x, y)) is computed as y * log(abs(x)).
# Class A, fused against split; ordinary values; algebra. Wrong in jaxlib 0.10.2 (2026-11-24).
# By hand: pow(-1, 1) is -1, whose logarithm is NaN.
import jax
import numpy as np
from jax import lax


def f(x, y):
    return lax.log(lax.pow(x, y))


arguments = [np.float32(-1), np.float32(1)]
got = np.asarray(jax.jit(f)(*arguments))
with jax.disable_jit():
    split = np.asarray(f(*arguments))
print(got, "split:", split)
raise SystemExit(int(got.tobytes() != split.tobytes()))
