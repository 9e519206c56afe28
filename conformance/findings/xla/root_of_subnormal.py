# cbrt of the smallest positive number is negative.
# Class B: StableHLO's cbrt is "rootn(x, 3) from IEEE-754"; special values. Wrong in jaxlib 0.10.2
# (2026-11-24).
# By hand: 2**-149 = 2**-150 * 2, so its root is 2**-50 * 1.26 = 1.12e-15; rounding and flushing
# leave no negative number.
import jax
import numpy as np
from jax import lax

got = float(jax.jit(lax.cbrt)(np.float32(2**-149)))
print(got)
raise SystemExit(int(got < 0))
