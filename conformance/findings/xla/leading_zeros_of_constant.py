# The leading zeros of a negative constant of 8, 16 or 32 bits are counted in 64 bits.
# Class A, constant against parameter; ordinary values. Wrong in jaxlib 0.10.2 (2026-11-24).
# By hand: -1 is 11111111 in 8 bits, which begins with no 0: 0. 64 bits have 56 more.
import jax
import numpy as np
from jax import lax

arguments = [np.int8(-1)]
constant, parameter = jax.jit(lambda: lax.clz(*arguments))(), jax.jit(lax.clz)(*arguments)
print("constant:", constant, "parameter:", parameter)
raise SystemExit(int(not constant == parameter == 0))
