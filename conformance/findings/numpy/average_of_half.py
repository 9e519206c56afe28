# average with weights sums float16 as float16, without weights as float32.
# Class A, equal weights against none; ordinary values. Wrong in numpy 2.4.6 (2026-11-24).
# By hand: the average of ten times 60000 with equal weights is 60000, as without weights. The sum
# 600000 is no float16.
import numpy as np

x, weights = np.full(10, 60000, np.float16), np.ones(10, np.float16)
with np.errstate(all="ignore"):
    got = float(np.average(x, weights=weights))
print(got, "without weights:", np.average(x))
raise SystemExit(int(got != float(np.average(x))))
