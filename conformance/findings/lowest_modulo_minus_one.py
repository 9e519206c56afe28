# The lowest int32 modulo -1 is -1, or ends the process.
# Class A, device against device; the lowest int32; crash. Wrong on CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: -2**31 is a multiple of -1, so nothing is left. It is rendered as the % of C, where the
# quotient 2**31 overflows and means anything.
import os

from tinygrad import Tensor, dtypes

child = os.fork()
if child == 0:
    x = Tensor([-(2**31)], dtype=dtypes.int32).realize()
    y = Tensor([-1], dtype=dtypes.int32).realize()
    os._exit((x % y).tolist() != [0])
_, status = os.waitpid(child, 0)
print("ends with", os.waitstatus_to_exitcode(status))
raise SystemExit(status != 0)
