# fft of complex float32 ends the process, as it computes with float64 alone.
# Class B: StableHLO's spec of fft: a "tensor of floating-point or complex type"; ordinary values;
# crash. Wrong in jaxlib 0.10.2 (2026-11-24). Known: openxla/stablehlo#3010.
# By hand: the transform of the one number 3 is 3.
import os

from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

TEXT = """func.func @main() -> tensor<1xf32> { %x = stablehlo.constant dense<(3.0, 0.0)> :
  tensor<1xcomplex<f32>> %y = stablehlo.fft %x, type = FFT, length = [1] :
  (tensor<1xcomplex<f32>>) -> tensor<1xcomplex<f32>> %r = stablehlo.real %y :
  (tensor<1xcomplex<f32>>) -> tensor<1xf32> return %r : tensor<1xf32> }"""
if os.fork():
    raise SystemExit(int(os.wait()[1] != 0))
with make_ir_context() as context:
    stablehlo.register_interpreter_dialect(context)
    stablehlo.eval_module(ir.Module.parse(TEXT), [])
os._exit(0)
