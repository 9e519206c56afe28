# A division of integer constants by 0 ends the process while it compiles.
# Class A, constant against parameter; special values; crash. Wrong in jaxlib 0.10.2 (2026-11-24).
# By hand: at run time it ends and gives -1; XLA's documents say that a division by 0 "produces an
# implementation defined value", and a value leaves the process alive.
import os

import jax
import numpy as np
from jax import lax

child = os.fork()
if not child:
    jax.jit(lambda: lax.div(np.int32(7), np.int32(0)))().block_until_ready()
    os._exit(0)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print("ends with", code)
raise SystemExit(int(code != 0))
