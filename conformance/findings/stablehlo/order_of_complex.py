# compare of complex numbers by LT ends the process.
# Class B: StableHLO's spec of compare: "lexicographic comparison of (real, imag) pairs"; ordinary
# values; crash. Wrong in jaxlib 0.10.2 (2026-11-24).
# By hand: 1 + 2i is not below itself: false.
import os

from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

TEXT = """func.func @main() -> tensor<i1> { %x = stablehlo.constant dense<(1.0, 2.0)> :
  tensor<complex<f32>> %z = stablehlo.compare LT, %x, %x, FLOAT : (tensor<complex<f32>>,
  tensor<complex<f32>>) -> tensor<i1> return %z : tensor<i1> }"""
if os.fork():
    raise SystemExit(int(os.wait()[1] != 0))
with make_ir_context() as context:
    stablehlo.register_interpreter_dialect(context)
    stablehlo.eval_module(ir.Module.parse(TEXT), [])
os._exit(0)
