# trapezoid adds neighbours of a uint8 array as uint8, where the sum wraps.
# Class A, uint8 against uint16; ordinary values. Wrong in numpy 2.4.6 (2026-11-24). Known:
# numpy/numpy#24919.
# By hand: one trapezoid of width 1 between heights 200 and 200 has the area 200. The sum 400
# wraps to 144.
import numpy as np

y = np.array([200, 200], np.uint8)
got, wide = float(np.trapezoid(y)), float(np.trapezoid(y.astype(np.uint16)))
print(got, "as uint16:", wide)
raise SystemExit(int(got != 200))
