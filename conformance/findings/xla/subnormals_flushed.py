# At run time a subnormal number is 0, as an operand and as a result.
# Class A, constant against parameter; special values. Wrong in jaxlib 0.10.2 (2026-11-24). Known:
# jax-ml/jax#16200.
# By hand: 2**-126 / 2 = 2**-127 is a float32, with one bit of the fraction, as the constant is
# computed.
import jax
import numpy as np
from jax import lax

x, y = np.float32(2**-126), np.float32(0.5)
constant, parameter = float(jax.jit(lambda: lax.mul(x, y))()), float(jax.jit(lax.mul)(x, y))
print("constant:", constant, "parameter:", parameter)
raise SystemExit(int(parameter != 2**-127))
