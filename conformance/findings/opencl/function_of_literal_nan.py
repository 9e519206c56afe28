# exp2 of a literal NaN is no NaN.
# Class B: OpenCL C 7.5 and C99 F.9: a NaN operand gives a NaN. Wrong on PoCL 3.1.
import struct

import pyopencl as cl

SOURCE = "kernel void k(global float *out) { out[0] = exp2(as_float(0x7fc00000u)); }"
context = cl.Context(cl.get_platforms()[0].get_devices())
buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4)
queue, out = cl.CommandQueue(context), bytearray(4)
cl.Program(context, SOURCE).build().k(queue, (1,), (1,), buffer)
cl.enqueue_copy(queue, out, buffer)
(found,) = struct.unpack("<f", out)
print(found)
# By hand: 2 to the power of a NaN is a NaN, which alone differs from itself.
raise SystemExit(int(found == found))
