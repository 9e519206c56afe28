# torch.flip of unsigned integers and float8 works on the first axis of a matrix, not on the last.
# Class A, between axes; ordinary values; crash. Wrong in torch
# 2.13.0 (2026-11-24).
# By hand: [[1, 2], [3, 4]] flipped on axis 1 is [[2, 1], [4, 3]]; flipping moves bits alone.

import torch

x = torch.tensor([[1, 2], [3, 4]], dtype=torch.uint64)
print(x.flip(0).tolist())
try:
    print(x.flip(1).tolist())
except NotImplementedError as error:
    print(error)
    raise SystemExit(1) from None
