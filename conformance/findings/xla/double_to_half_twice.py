# float64 is rounded to float32 before it is rounded to float16 or bfloat16.
# Class A, constant against parameter; ordinary values. Wrong in jaxlib 0.10.2 (2026-11-24).
# By hand: x is above 1 + 2**-11, the middle of the float16 numbers 1 and 1 + 2**-10, by 2**-40: 1
# + 2**-10 = 1.0009765625. float32 drops the 2**-40, and the tie goes to 1.
import jax
import numpy as np
from jax import lax

jax.config.update("jax_enable_x64", True)


def to_half(x):
    return lax.convert_element_type(x, np.float16)


x = jax.numpy.float64(1 + 2**-11 + 2**-40)
constant, parameter = float(jax.jit(lambda: to_half(x))()), float(jax.jit(to_half)(x))
print("constant:", constant, "parameter:", parameter)
raise SystemExit(int(parameter != 1.0009765625))
