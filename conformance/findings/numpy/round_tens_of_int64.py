# round of an int64 to tens is computed in float64.
# Class B: numpy's documents of round say that it rounds to the given number of decimals; ordinary
# values. Wrong in numpy 2.4.6 (2026-11-24).
# By hand: 1234567890123456789 to tens is 1234567890123456790, an int64. float64 has 53 bits, and
# its neighbours there are 256 apart.
import numpy as np

got = int(np.round(np.array([1234567890123456789]), -1)[0])
print(got)
raise SystemExit(int(got != 1234567890123456790))
