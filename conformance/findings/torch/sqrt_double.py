# torch.sqrt of float64 is not correctly rounded, while torch.hypot(x, 0) of the same number is.
# Class A, and B: IEEE 754-2019 5.4.1, squareRoot; ordinary values. Wrong in torch
# 2.13.0 (2026-11-24).
# By hand: x = 1 - 2**-53. (1 - 2**-54)**2 = x + 2**-108 > x, so the root lies below 1 - 2**-54,
# the midpoint of 1 - 2**-53 and 1: it rounds to 1 - 2**-53 = x.

import torch

x = torch.tensor([1 - 2.0**-53], dtype=torch.float64)
root, same = torch.sqrt(x).item(), torch.hypot(x, torch.zeros_like(x)).item()
print(root.hex(), "hypot:", same.hex(), "right:", x.item().hex())
raise SystemExit(int(root != 1 - 2.0**-53))
