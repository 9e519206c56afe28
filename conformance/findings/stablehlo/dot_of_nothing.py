# dot_general over a dimension of size 0 ends the process.
# Class B: StableHLO's spec of dot_general: a reduce with "init_values=[constant(0,
# element_type(result))]"; ordinary values; crash. Wrong in jaxlib 0.10.2 (2026-11-24).
# By hand: the sum of no products is the initial value, 0.
import os

from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

TEXT = """func.func @main() -> tensor<f32> { %x = stablehlo.constant dense<> : tensor<0xf32> %z =
  stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<0xf32>, tensor<0xf32>) ->
  tensor<f32> return %z : tensor<f32> }"""
if os.fork():
    raise SystemExit(int(os.wait()[1] != 0))
with make_ir_context() as context:
    stablehlo.register_interpreter_dialect(context)
    stablehlo.eval_module(ir.Module.parse(TEXT), [])
os._exit(0)
