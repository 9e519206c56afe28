# interp divides a difference of values that overflows, though the result between them is 0.
# Class B: numpy's documents of interp: the "piecewise linear interpolant"; ordinary values. Wrong
# in numpy 2.4.6 (2026-11-24).
# By hand: half way from 1e308 to -1e308 is 0. The difference, -2e308, is below the lowest
# float64, -1.8e308.
import numpy as np

with np.errstate(all="ignore"):
    got = float(np.interp(0.5, [0, 1], [1e308, -1e308]))
print(got)
raise SystemExit(int(got != 0))
