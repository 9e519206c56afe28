# A float64 that is cast to int32 and back keeps the sign of -0.5, where a comparison chooses it.
# Class B: OpenCL C 6.4 takes casts from C99: 6.3.1.4 makes the integer 0 of it, and 0.0 of that.
# Wrong on Intel's CPU runtime 2026.2, which truncates instead: -0.0.
import struct

import pyopencl as cl

SOURCE = """kernel void k(global double *x) {
  x[0] = x[0] < 9.0 ? (double)(int)x[0] : 7.0;
}"""
context = cl.Context(cl.get_platforms()[0].get_devices())
flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
buffer = cl.Buffer(context, flags, hostbuf=bytearray(struct.pack("<d", -0.5)))
queue, out = cl.CommandQueue(context), bytearray(8)
cl.Program(context, SOURCE).build().k(queue, (1,), (1,), buffer)
cl.enqueue_copy(queue, out, buffer)
# By hand: -0.5 without its fraction is the integer 0, which has no sign, and all bits of 0.0 are 0.
raise SystemExit(int(print(struct.unpack("<d", out)[0]) or any(out)))
