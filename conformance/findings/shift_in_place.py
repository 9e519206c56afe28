# A shift in place reads elements that it has already overwritten.
# Class A, fused against split; ordinary values. Wrong on PYTHON, CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: shifted by one, 1, 2, ... 17 become 0, 1, ... 16. One kernel reads and writes x: element
# 1 is written first, and read for element 2. fix_store_hazard does not look for a PAD that is cut
# by a SHRINK, nor for what roll() makes; with contiguous() before the assignment it is right.
from tinygrad import Tensor, dtypes


def shifted(split: bool) -> list[int]:
    x = Tensor(list(range(1, 18)), dtype=dtypes.int32).realize()
    value = x.pad(((1, 0),)).shrink(((0, 17),))
    return list(x.assign(value.contiguous() if split else value).realize().tolist())


print(shifted(False)[-3:], "split:", shifted(True)[-3:])
raise SystemExit(shifted(False) != list(range(17)))
