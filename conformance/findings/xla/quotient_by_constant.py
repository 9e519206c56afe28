# x / 41 is computed as x * (1 / 41), which rounds twice.
# Class A, constant against parameter; ordinary values; algebra. Wrong in jaxlib 0.10.2
# (2026-11-24).
# By hand: 41 / 41 is 1. 1 / 41 is not exact, and 41 times the float32 nearest to it rounds to 1 -
# 2**-24.
import jax
import numpy as np
from jax import lax

x = np.float32(41)
got = float(jax.jit(lambda x: x / np.float32(41))(x))
print(got, "parameter:", jax.jit(lax.div)(x, x))
raise SystemExit(int(got != 1))
