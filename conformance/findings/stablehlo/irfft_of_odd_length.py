# IRFFT drops the last element of the input where the length is odd.
# Class B: StableHLO's spec of fft: irfft "computes the inverse of rfft"; ordinary values. Wrong
# in jaxlib 0.10.2 (2026-11-24).
# By hand: the transform of 1, 2, 3 is 6, 1 + 2w + 3w**2 with w = exp(-2 pi i / 3), so -1.5 +
# 0.8660254i, and the inverse of that is 1, 2, 3.
import numpy as np
from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

TEXT = """func.func @main() -> tensor<3xf64> {
  %x = stablehlo.constant dense<[(6.0, 0.0), (-1.5, 0.8660254037844386)]> : tensor<2xcomplex<f64>>
  %z = stablehlo.fft %x, type = IRFFT, length = [3] : (tensor<2xcomplex<f64>>) -> tensor<3xf64>
  return %z : tensor<3xf64> }"""
with make_ir_context() as context:
    stablehlo.register_interpreter_dialect(context)
    got = np.array(stablehlo.eval_module(ir.Module.parse(TEXT), [])[0])
print(got.tolist())
raise SystemExit(int(not np.allclose(got, [1, 2, 3])))
