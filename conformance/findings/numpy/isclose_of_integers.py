# isclose without tolerances calls neighbouring integers close, since it makes float64 of one.
# Class A, isclose against equality; ordinary values. Wrong in numpy 2.4.6 (2026-11-24).
# By hand: with atol = rtol = 0 the documents' abs(a - b) <= atol + rtol * abs(b) is 1 <= 0, which
# is false.
import numpy as np

a, b = np.int64(2**53 + 1), np.int64(2**53)
got = bool(np.isclose(a, b, rtol=0, atol=0))
print(got)
raise SystemExit(int(got != bool(a == b)))
