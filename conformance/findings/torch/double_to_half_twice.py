# A conversion of float64 to float16 rounds twice, by way of float32; to bfloat16, float8 alike.
# Class B: IEEE 754-2019 5.4.2, convertFormat; ordinary values. Wrong in torch
# 2.13.0 (2026-11-24).
# By hand: 1 + 2**-11 is the midpoint of the float16 1 and 1 + 2**-10. x = 1 + 2**-11 + 2**-40 lies
# above it, so x rounds to 1 + 2**-10. In float32 x is the midpoint, which then rounds to even, 1.

import numpy as np
import torch

x = 1 + 2.0**-11 + 2.0**-40
half = torch.tensor([x], dtype=torch.float64).to(torch.float16).item()
print(half, "numpy:", float(np.float64(x).astype(np.float16)), "right:", 1 + 2.0**-10)
raise SystemExit(int(half != 1 + 2.0**-10))
