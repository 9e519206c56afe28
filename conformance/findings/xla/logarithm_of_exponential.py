# log(exp(x)) is folded to x, though exp overflows.
# Class A, fused against split; ordinary values; algebra. Wrong in jaxlib 0.10.2 (2026-11-24).
# Known: openxla/xla#42732.
# By hand: exp(1000) is above the largest float32, 3.4e38, so infinite, and so is its logarithm.
import jax
import numpy as np
from jax import lax


def f(x):
    return lax.log(lax.exp(x))


arguments = [np.float32(1000)]
got = np.asarray(jax.jit(f)(*arguments))
with jax.disable_jit():
    split = np.asarray(f(*arguments))
print(got, "split:", split)
raise SystemExit(int(got.tobytes() != split.tobytes()))
