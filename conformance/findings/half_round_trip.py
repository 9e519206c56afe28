# A cast to float16 and back is folded away.
# Class A, fused against split; ordinary values; algebra. Wrong on PYTHON, CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=CPU ends with 1; X86: DEV=CPU:X86.
# By hand: 0.1 lies between 1638/2**14 = 0.09997558... and 1639/2**14 = 0.10003662..., neighbours
# in float16, nearer to the first. Folded it stays 0.1; with contiguous() after the first cast it
# is 0.09997558.
from tinygrad import Tensor, dtypes

x = Tensor([0.1], dtype=dtypes.float32).realize()
got = x.cast(dtypes.float16).cast(dtypes.float32).tolist()
split = x.cast(dtypes.float16).contiguous().cast(dtypes.float32).tolist()
print(got, "split:", split)
raise SystemExit(got != [1638 / 2**14])
