# The complement of a maximum is not taken.
# Class B: OpenCL C 6.4 takes ?: and ~ from C99: 6.5.15 chooses b, 6.5.3.3 complements each bit.
# Wrong on Intel's CPU runtime 2026.2 in groups of fewer than 16 work items, 32 and 64 bits alike.
import struct

import pyopencl as cl

SOURCE = """kernel void k(global int *out, global int *a, global int *b) {
  int x = ~a[0], y = ~b[0];
  out[0] = x < y ? y : x;
}"""
context = cl.Context(cl.get_platforms()[0].get_devices())
flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
buffers = [cl.Buffer(context, flags, hostbuf=bytearray(struct.pack("<i", n))) for n in (0, 3, 5)]
queue, out = cl.CommandQueue(context), bytearray(4)
cl.Program(context, SOURCE).build().k(queue, (1,), (1,), *buffers)
cl.enqueue_copy(queue, out, buffers[0])
# By hand: ~3 is -4, ~5 is -6, and the larger one is -4.
raise SystemExit(int(print(found := struct.unpack("<i", out)[0]) or found != -4))
