# log1p of a complex number adds 1 first, and loses what log1p is for.
# Class A, complex against real; ordinary values. Wrong in numpy 2.4.6 (2026-11-24).
# By hand: log(1 + x) = x - x**2/2 + ... is 9.9999999995e-11 for x = 1e-10, as the real log1p
# gives.
import numpy as np

got, real = np.log1p(1e-10 + 0j).real, np.log1p(1e-10)
print(got, "as a real:", real)
raise SystemExit(int(abs(got - real) > 1e-20))
