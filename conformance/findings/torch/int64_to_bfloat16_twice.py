# A conversion of int32, int64, uint32 or uint64 to bfloat16 rounds twice, by way of float32.
# Class B: IEEE 754-2019 5.4.1, convertFromInt; ordinary values. Wrong in torch
# 2.13.0 (2026-11-24).
# By hand: from 2**24 on bfloat16 (8 bits) holds multiples of 2**17. 2**24 + 2**16 + 1 lies above
# the midpoint of 2**24 and 2**24 + 2**17: the upper is right. float32 (multiples of 2) drops the
# 1, an even tie, and the midpoint then rounds to even, 2**24.

import torch

wrong = 0
for dtype in (torch.int32, torch.int64, torch.uint32, torch.uint64):
    got = torch.tensor([2**24 + 2**16 + 1], dtype=dtype).to(torch.bfloat16).item()
    print(dtype, int(got), "right:", 2**24 + 2**17)
    wrong += got != 2**24 + 2**17
raise SystemExit(int(wrong > 0))
