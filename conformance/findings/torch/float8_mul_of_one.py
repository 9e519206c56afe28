# torch.mul of float8 works for two elements, and is "not implemented" where an operand has one.
# Class A, between shapes; ordinary values; crash. Wrong in torch
# 2.13.0 (2026-11-24).
# By hand: 2 * 2 = 4, which float8_e4m3fn holds, for any number of elements.

import torch

two = torch.tensor([2.0, 2.0]).to(torch.float8_e4m3fn)
print((two * two).tolist())
try:
    print((two[:1] * two[:1]).tolist())
except NotImplementedError as error:
    print(error)
    raise SystemExit(1) from None
