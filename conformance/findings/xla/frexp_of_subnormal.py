# frexp gives every subnormal float64 the fraction 0.5 and the exponent of the smallest.
# Class B: jax.numpy.frexp is documented with x = mantissa * 2**exponent; special values. Wrong in
# jax 0.10.2 (2026-11-24).
# By hand: 3 * 2**-1074 = 0.75 * 2**-1072, a fraction from 0.5 to 1.
import jax
import numpy as np

jax.config.update("jax_enable_x64", True)

fraction, exponent = map(float, jax.numpy.frexp(np.float64(3 * 2.0**-1074)))
print(fraction, exponent)
raise SystemExit(int((fraction, exponent) != (0.75, -1072)))
