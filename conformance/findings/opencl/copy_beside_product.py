# A value that is copied beside a product of it changes its bits.
# Class C: OpenCL C asks for no signalling NaNs (7.2), the UOp language for bit copies.
# PoCL 3.1 (LLVM 15): c ? x : x * y becomes x * (c ? 1 : y), and a signalling NaN goes quiet.
import struct

import pyopencl as cl

SOURCE = """kernel void k(global uint *out, global int *c, global float *x, global float *y) {
  float product = x[0] * y[0];
  out[0] = as_uint(c[0] ? x[0] : product);
}"""
context = cl.Context(cl.get_platforms()[0].get_devices())
given = [b"\0" * 4, struct.pack("<i", 1), struct.pack("<I", 0x7F800001), struct.pack("<f", 1.0)]
flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
buffers = [cl.Buffer(context, flags, hostbuf=bytearray(data)) for data in given]
queue, out = cl.CommandQueue(context), bytearray(4)
cl.Program(context, SOURCE).build().k(queue, (64,), (64,), *buffers)
cl.enqueue_copy(queue, out, buffers[0])
# By hand: c is 1, so the result is x, and nothing is computed: 0x7f800001.
raise SystemExit(int(print(hex(f := int.from_bytes(out, "little"))) or f != 0x7F800001))
