# linspace with an integer dtype misses an integer stop beyond 2**53.
# Class B: numpy's documents of linspace: "If True, stop is the last sample"; ordinary values.
# Wrong in numpy 2.4.6 (2026-11-24).
# By hand: the last sample is the stop, 2**53 + 5 = 9007199254740997. It is computed as a float64,
# which is even there.
import numpy as np

got = int(np.linspace(2**53 + 1, 2**53 + 5, 5, dtype=np.int64)[-1])
print(got)
raise SystemExit(int(got != 2**53 + 5))
