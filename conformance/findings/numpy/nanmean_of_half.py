# nanmean of float16 sums as float16, where mean sums as float32.
# Class A, nanmean against mean; ordinary values. Wrong in numpy 2.4.6 (2026-11-24).
# By hand: the mean of ten times 60000 is 60000, which mean gives. The sum 600000 is no float16.
import numpy as np

x = np.full(10, 60000, np.float16)
with np.errstate(all="ignore"):
    got = float(np.nanmean(x))
print(got, "by mean:", np.mean(x))
raise SystemExit(int(got != float(np.mean(x))))
