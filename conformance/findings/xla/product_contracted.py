# A product and a difference become one fused operation.
# Class A, fused against split; ordinary values; algebra. Wrong in jaxlib 0.10.2 (2026-11-24).
# By hand: (1 + 2**-12)**2 = 1 + 2**-11 + 2**-24 is a tie of float32, and rounds to 1 + 2**-11;
# minus 1 that is 2**-11 = 0.00048828125.
import jax
import numpy as np


def f(x):
    return x * x - np.float32(1)


arguments = [np.float32(1 + 2**-12)]
got = np.asarray(jax.jit(f)(*arguments))
with jax.disable_jit():
    split = np.asarray(f(*arguments))
print(got, "split:", split)
raise SystemExit(int(got.tobytes() != split.tobytes()))
