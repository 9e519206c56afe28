# A float64 added to a literal NaN, and cast to float32, is infinite.
# Class B: PTX 9.0, add.f64 and cvt.rn.f32.f64: the result of a NaN is a NaN.
# Wrong on CUDA 13.0 and 13.5 (NVRTC), whose PTX stores 0x7f800000.
import cupy

SOURCE = """extern "C" __global__ void k(float *out, double *x) {
  double sum = x[0] + __longlong_as_double(0x7ff0000000000003ll);
  out[0] = (float)sum;
}"""
out = cupy.zeros(1, cupy.float32)
cupy.RawKernel(SOURCE, "k")((1,), (1,), (out, cupy.ones(1, cupy.float64)))
# By hand: 1 and a NaN add to a NaN, which is a NaN in float32 too, and alone differs from itself.
raise SystemExit(int(print(found := float(out[0])) or found == found))
