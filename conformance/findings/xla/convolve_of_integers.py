# convolve of integers is computed in floating point.
# Class A, convolve against dot; ordinary values. Wrong in jax 0.10.2 (2026-11-24).
# By hand: (16777217, 1) convolved with (1) is itself, as integers; float32 has 24 bits and makes
# 16777216 of the first.
import jax
import numpy as np

x = np.int32([16777217])
got, dot = int(jax.numpy.convolve(x, np.int32([1]))[0]), int(jax.numpy.dot(x, np.int32([1])))
print(got, "by dot:", dot)
raise SystemExit(int(got != 16777217))
