# sqrt(x * x) is folded to abs(x), though the square overflows.
# Class A, fused against split; ordinary values; algebra. Wrong in jaxlib 0.10.2 (2026-11-24).
# Known: openxla/xla#42732.
# By hand: (1e20)**2 = 1e40 is above the largest float32, 3.4e38, so infinite, and so is its root.
import jax
import numpy as np
from jax import lax


def f(x):
    return lax.sqrt(x * x)


arguments = [np.float32(1e20)]
got = np.asarray(jax.jit(f)(*arguments))
with jax.disable_jit():
    split = np.asarray(f(*arguments))
print(got, "split:", split)
raise SystemExit(int(got.tobytes() != split.tobytes()))
