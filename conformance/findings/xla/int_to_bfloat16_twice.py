# An integer is rounded to float32 before it is rounded to bfloat16.
# Class A, constant against parameter; ordinary values. Wrong in jaxlib 0.10.2 (2026-11-24).
# By hand: 16842753 = 2**24 + 2**16 + 1 lies between the bfloat16 numbers 2**24 and 2**24 + 2**17
# = 16908288, above the middle, 2**24 + 2**16: 16908288, as XLA folds it. float32 drops the 1, and
# the tie goes to 2**24.
import jax
from jax import lax


def to_bfloat16(x):
    return lax.convert_element_type(x, jax.numpy.bfloat16)


x = jax.numpy.int32(16842753)
constant, parameter = int(jax.jit(lambda: to_bfloat16(x))()), int(jax.jit(to_bfloat16)(x))
print("constant:", constant, "parameter:", parameter)
raise SystemExit(int(parameter != 16908288))
