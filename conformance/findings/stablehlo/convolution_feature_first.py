# convolution ends the process where the result has its features before its batch.
# Class B: StableHLO's spec lets output_feature_dimension be 0; ordinary values; crash. Wrong in
# jaxlib 0.10.2 (2026-11-24).
# By hand: 2 * 3 is 6, in each of 2 rows.
import os

from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

TEXT = """func.func @main() -> tensor<1x2xi8> { %a = stablehlo.constant dense<2> : tensor<2x1xi8>
  %b = stablehlo.constant dense<3> : tensor<1x1xi8> %z = stablehlo.convolution(%a, %b) dim_numbers
  = [b, f]x[i, o]->[f, b], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 :
  i64} : (tensor<2x1xi8>, tensor<1x1xi8>) -> tensor<1x2xi8> return %z : tensor<1x2xi8> }"""
if os.fork():
    raise SystemExit(int(os.wait()[1] != 0))
with make_ir_context() as context:
    stablehlo.register_interpreter_dialect(context)
    stablehlo.eval_module(ir.Module.parse(TEXT), [])
os._exit(0)
