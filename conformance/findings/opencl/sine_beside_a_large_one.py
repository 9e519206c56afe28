# The sine of a small number changes with its neighbour in a vector.
# Class B: OpenCL C 6.12.2: functions take each component alone; 7.4: sin is within 4 ulp.
# Wrong on PoCL 3.0: 2.4e-38 beside 1e9 gives 0.00798.
import struct

import pyopencl as cl

SOURCE = """kernel void k(global float *out, global float *x) {
  vstore8(sin(vload8(0, x)), 0, out);
}"""
context = cl.Context(cl.get_platforms()[0].get_devices())
given = [bytes(32), struct.pack("<8f", *[2.4e-38] * 7, 1e9)]
flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
buffers = [cl.Buffer(context, flags, hostbuf=bytearray(data)) for data in given]
queue, out = cl.CommandQueue(context), bytearray(32)
cl.Program(context, SOURCE).build().k(queue, (1,), (1,), *buffers)
cl.enqueue_copy(queue, out, buffers[0])
# By hand: so small a number is its own sine.
raise SystemExit(int(print(found := struct.unpack("<8f", out)[0]) or not 2e-38 < found < 3e-38))
