# x / exp(y) is computed as x * exp(-y), which is flushed to 0.
# Class A, fused against split; ordinary values; algebra. Wrong in jaxlib 0.10.2 (2026-11-24).
# By hand: exp(88) = 1.65e38 is a float32, and 1e30 by that is 6.05e-9. exp(-88) is below 2**-126,
# and XLA makes it 0.
import jax
import numpy as np
from jax import lax


def f(x, y):
    return x / lax.exp(y)


arguments = [np.float32(1e30), np.float32(88)]
got = np.asarray(jax.jit(f)(*arguments))
with jax.disable_jit():
    split = np.asarray(f(*arguments))
print(got, "split:", split)
raise SystemExit(int(got.tobytes() != split.tobytes()))
