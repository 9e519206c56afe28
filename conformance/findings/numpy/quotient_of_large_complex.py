# A complex quotient overflows inside, though it is 1.
# Class A, complex64 against complex128; ordinary values. Wrong in numpy 2.4.6 (2026-11-24).
# By hand: z / z is 1 for z = 2e38 + 2e38j. With the ratio r = 1 the divisor is 2e38 + 2e38 * r,
# above the largest float32, 3.4e38.
import numpy as np

z = np.array([2e38 + 2e38j], np.complex64)
with np.errstate(all="ignore"):
    got = complex((z / z)[0])
wide = z.astype(np.complex128)
print(got, "as complex128:", wide / wide)
raise SystemExit(int(got != 1))
