# exp2(x) is exp(x * log(2)), with the product rounded to bfloat16.
# Class A, exp2 against pow; ordinary values. Wrong in jaxlib 0.10.2 (2026-11-24).
# By hand: 2**8 = 256, a bfloat16 number. 8 * log(2) = 5.545 is rounded to 5.53125, and
# exp(5.53125) = 252.5.
import jax
from jax import lax

x = jax.numpy.bfloat16(8)
got, power = float(lax.exp2(x)), float(lax.pow(jax.numpy.bfloat16(2), x))
print(got, "by pow:", power)
raise SystemExit(int(got != 256))
