# The negation of the lowest int16 is not cut to 16 bits before it is extended.
# Class A: 0 - x in 16 bits, extended to 32, differs from the same sum that the compiler cannot see.
# Wrong on CUDA 13.0 (ptxas behind NVRTC), sm_90: neg.s16 and cvt.s32.s16 give 32768.
import cupy

SOURCE = """extern "C" __global__ void k(int *out, short *x) {
  short negated = (short)(0u - (unsigned)x[0]);
  out[0] = negated;
  unsigned hidden = 0u - (unsigned)x[0];
  asm("" : "+r"(hidden));
  out[1] = (short)hidden;
}"""
out = cupy.zeros(2, cupy.int32)
cupy.RawKernel(SOURCE, "k")((1,), (1,), (out, cupy.full(1, -32768, cupy.int16)))
# By hand: 2^16 - 32768 is 32768, whose 16 bits are those of -32768.
raise SystemExit(int(print(found := out.get().tolist()) or found != [-32768, -32768]))
