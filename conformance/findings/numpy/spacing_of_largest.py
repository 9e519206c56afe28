# spacing of the largest number of a dtype is infinite.
# Class B: numpy's documents of spacing: "the distance between x and the nearest adjacent number";
# special values. Wrong in numpy 2.4.6 (2026-11-24).
# By hand: the largest float16 is 65504, and the one below it is 65472: 32 apart.
import numpy as np

with np.errstate(all="ignore"):
    got = float(np.spacing(np.float16(65504)))
print(got)
raise SystemExit(int(got != 32))
