# norm of a float16 vector sums the squares as float16, where they overflow.
# Class A, norm against hypot; ordinary values. Wrong in numpy 2.4.6 (2026-11-24). Known:
# numpy/numpy#8775.
# By hand: sqrt(300**2 + 400**2) = 500, as hypot gives; 400**2 = 160000 is above 65504, the
# largest float16.
import numpy as np

with np.errstate(all="ignore"):
    got = float(np.linalg.norm(np.array([300, 400], np.float16)))
print(got, "by hypot:", np.hypot(np.float16(300), np.float16(400)))
raise SystemExit(int(got != 500))
