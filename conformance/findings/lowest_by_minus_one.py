# The lowest int32 divided by -1 ends the process.
# Class A, device against device; the lowest int32; crash. Wrong on CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: -2**31 / -1 = 2**31 = 2**32 - 2**31, so the int32 is -2**31, as -x gives it. The
# instruction of the processor traps.
import os

from tinygrad import Tensor, dtypes

child = os.fork()
if child == 0:
    x = Tensor([-(2**31)], dtype=dtypes.int32).realize()
    y = Tensor([-1], dtype=dtypes.int32).realize()
    os._exit((x // y).tolist() != [-(2**31)])
_, status = os.waitpid(child, 0)
print("ends with", os.waitstatus_to_exitcode(status))
raise SystemExit(status != 0)
