# compare ignores TOTALORDER.
# Class B: StableHLO's spec of compare: with TOTALORDER it uses "totalOrder and compareQuietEqual
# operations from IEEE-754"; special values. Wrong in jaxlib 0.10.2 (2026-11-24).
# By hand: totalOrder puts -0 below +0, so -0 LT 0 is true; as floats they are equal.
import numpy as np
from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

TEXT = """func.func @main() -> tensor<i1> { %x = stablehlo.constant dense<-0.0> : tensor<f32>
  %y = stablehlo.constant dense<0.0> : tensor<f32>
  %z = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %z : tensor<i1> }"""
with make_ir_context() as context:
    stablehlo.register_interpreter_dialect(context)
    got = np.array(stablehlo.eval_module(ir.Module.parse(TEXT), [])[0])
print(got.tolist())
raise SystemExit(int(not got.item()))
