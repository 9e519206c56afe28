# Building a loop with a value that is chosen inside it ends the process.
# Class B: OpenCL 3.0 API 5.8.2: clBuildProgram returns CL_SUCCESS, or else one of its errors.
# Intel's CPU runtime 2026.2 ends by SIGSEGV in SimplifyCFG.
import os

SOURCE = """kernel void k(global uchar *arena) {
  global ulong *o = (global ulong *)(arena + 64);
  global ulong *a = (global ulong *)(arena + 576), *b = (global ulong *)(arena + 960);
  for (long i = 0; i < 5; i++) { ulong p[1]; p[0] = 1; uchar low = i < 4;
    for (long n = 0; n < 7; n++) { ulong q = p[0]; long at = i + n;
      ulong v = a[at], w = b[at], v2 = a[at], w2 = b[at], d = low - w2, s = d >> (v2 & 63);
      ulong c = low ? s : 2048, r = w * c, m = r < v ? v : r, t = q * m; p[0] = t; }
    o[i] = p[0]; } }"""
if (child := os.fork()) == 0:
    import pyopencl as cl

    cl.Program(cl.Context(cl.get_platforms()[0].get_devices()), SOURCE).build()
    os._exit(0)
# By hand: the source is right, so it is built, and the child ends with 0.
raise SystemExit(int(print(code := os.waitpid(child, 0)[1]) or code != 0))
