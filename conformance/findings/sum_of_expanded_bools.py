# A sum of bools along an expanded axis is a number, where it should be a truth.
# Class A, fused against split; ordinary values. Wrong on PYTHON, CL, CPU, X86
# of tinygrad 0.14.0 (Python 3.11, clang 19, PoCL 3.0). DEV=PYTHON ends with 1.
# By hand: the sum of three truths as a bool is true, and true != true is false; the sum of three
# untruths is false, and false != false is false. Fused, the sum of an axis that was expanded is a
# product with its length: 3 != true. With contiguous() before the sum it is right.
from tinygrad import Tensor, dtypes

x = Tensor([True, False]).realize()
expanded = x.reshape(2, 1).expand(2, 3)


def differs(t: Tensor) -> object:
    return (t.sum(1, dtype=dtypes.bool) != x).tolist()


got, split = differs(expanded), differs(expanded.contiguous())
print(f"{got} split: {split}")
raise SystemExit(got != [False, False])
