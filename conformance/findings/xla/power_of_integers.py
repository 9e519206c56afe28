# An integer power takes 6 bits of the exponent when it is computed at run time.
# Class A, run time against products; ordinary values. Wrong in jaxlib 0.10.2 (2026-11-24).
# By hand: 64 is 1000000 in binary, whose 6 low bits are 0, and 3**0 is 1. 3**64 =
# 3433683820292512484657849089281, modulo 2**32 that is 2038349057.
import jax
import numpy as np

got = int(jax.jit(jax.numpy.power)(np.int32(3), np.int32(64)))
product = int(jax.numpy.prod(np.full(64, 3, np.int32)))
print(got, "by products:", product)
raise SystemExit(int(got != product))
