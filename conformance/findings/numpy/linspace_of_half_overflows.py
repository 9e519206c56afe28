# linspace subtracts start from stop in their dtype, where the difference overflows.
# Class A, float16 against float64; ordinary values. Wrong in numpy 2.4.6 (2026-11-24).
# By hand: from -60000 to 60000 in 3 samples: -60000, 0, 60000, all of them float16 numbers. The
# difference, 120000, is none: the largest is 65504.
import numpy as np

a, b = np.float16(-60000), np.float16(60000)
with np.errstate(all="ignore"):
    got = np.linspace(a, b, 3).tolist()
print(got, "as float64:", np.linspace(float(a), float(b), 3))
raise SystemExit(int(got != np.linspace(float(a), float(b), 3).astype(np.float16).tolist()))
