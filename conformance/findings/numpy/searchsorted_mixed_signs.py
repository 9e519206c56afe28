# searchsorted of an int64 in uint64 compares float64.
# Class A, searchsorted against comparison; ordinary values. Wrong in numpy 2.4.6 (2026-11-24).
# Known: numpy/numpy#29727.
# By hand: a[0] < v = a[1], as numpy's own a < v says, so the documents' a[i-1] < v <= a[i] holds
# for i = 1. As float64 2**53 + 1 is 2**53.
import numpy as np

a = np.array([2**53, 2**53 + 1], np.uint64)
v = np.int64(2**53 + 1)
got, want = int(np.searchsorted(a, v)), int((a < v).sum())
print(got, "by comparison:", want)
raise SystemExit(int(got != want))
