# median adds two float16 numbers as float16, where the sum overflows.
# Class A, median against mean; ordinary values. Wrong in jax 0.10.2 (2026-11-24).
# By hand: the two numbers in the middle are 60000 and 60000, and so is their mean, a float16; the
# sum 120000 is none.
import jax
import numpy as np

x = np.float16([60000, 60000])
got, mean = float(jax.numpy.median(x)), float(jax.numpy.mean(x))
print(got, "by mean:", mean)
raise SystemExit(int(got != 60000))
