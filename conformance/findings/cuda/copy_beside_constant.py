# A NaN that a comparison with a constant copies changes its bits.
# Class B: PTX 9.0, selp: the instruction copies an operand; max alone may make a canonical NaN.
# Wrong on CUDA 13.0 (ptxas behind NVRTC), sm_90: x < 1.5 ? 1.5 : x becomes a maximum.
import cupy

SOURCE = """extern "C" __global__ void k(unsigned *out, float *x) {
  out[0] = __float_as_uint(x[0] < 1.5f ? 1.5f : x[0]);
}"""
out = cupy.zeros(1, cupy.uint32)
x = cupy.full(1, 0x7FC00001, cupy.uint32).view(cupy.float32)
cupy.RawKernel(SOURCE, "k")((1,), (1,), (out, x))
# By hand: a NaN is not less than 1.5, so the result is x, and nothing is computed: 0x7fc00001.
raise SystemExit(int(print(hex(found := int(out[0]))) or found != 0x7FC00001))
