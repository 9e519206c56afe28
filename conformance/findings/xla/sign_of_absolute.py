# abs(x) >= 0 is folded to true, also where the lowest integer has no absolute value.
# Class A, fused against split; special values. Wrong in jaxlib 0.10.2 (2026-11-24).
# By hand: -128 has no absolute value in int8: abs gives -128, as it does when it is returned, and
# that is below 0.
import jax
import numpy as np


def f(x):
    return abs(x) >= 0


arguments = [np.int8(-128)]
got = np.asarray(jax.jit(f)(*arguments))
with jax.disable_jit():
    split = np.asarray(f(*arguments))
print(got, "split:", split)
raise SystemExit(int(got.tobytes() != split.tobytes()))
