# On X86 a number that is cut to 16 bits and divided at once ends the process.
# Class A, device against device; ordinary values; crash. Wrong on X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU:X86 ends with 1.
# By hand: 7 as an int32 is 7 as a uint16, and 7 // 2 = 3. The machine code has an instruction
# that the processor does not know, or reads where nothing is.
import os

from tinygrad import Tensor, dtypes

child = os.fork()
if child == 0:
    x = Tensor([7], dtype=dtypes.int32).realize()
    y = Tensor([2], dtype=dtypes.uint16).realize()
    os._exit((x.cast(dtypes.uint16) // y).tolist() != [3])
_, status = os.waitpid(child, 0)
print("ends with", os.waitstatus_to_exitcode(status))
raise SystemExit(status != 0)
