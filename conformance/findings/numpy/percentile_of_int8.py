# percentile subtracts neighbours of an int8 array as int8, where the difference wraps.
# Class A, int8 against int16; ordinary values. Wrong in numpy 2.4.6 (2026-11-24). Known:
# numpy/numpy#29315.
# By hand: half way from -100 to 100 is 0. The difference 200 is no int8, and wraps to -56.
import numpy as np

x = np.array([-100, 100], np.int8)
got, wide = float(np.percentile(x, 50)), float(np.percentile(x.astype(np.int16), 50))
print(got, "as int16:", wide)
raise SystemExit(int(got != 0))
