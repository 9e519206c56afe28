# A product of bfloat16 stays unrounded (xla_allow_excess_precision, on by default).
# Class A, fused against split; ordinary values; algebra. Wrong in jaxlib 0.10.2 (2026-11-24).
# Known: jax-ml/jax#23007.
# By hand: 1.1015625 squared is 1.2134399, between the bfloat16 1.2109375 and 1.21875, and nearer
# to the first.
import jax
import numpy as np
from jax import lax


def f(x):
    return lax.convert_element_type(x * x, np.float32)


arguments = [jax.numpy.bfloat16(1.1)]
got = np.asarray(jax.jit(f)(*arguments))
with jax.disable_jit():
    split = np.asarray(f(*arguments))
print(got, "split:", split)
raise SystemExit(int(got.tobytes() != split.tobytes()))
