# triangular_solve of a batch ends the process.
# Class B: StableHLO's spec of triangular_solve: "solves batches"; ordinary values; crash. Wrong
# in jaxlib 0.10.2 (2026-11-24). Known: openxla/stablehlo#2964.
# By hand: 3 * x = 3 and 8 * x = 8 have the solution 1.
import os

from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

TEXT = """func.func @main() -> tensor<2x1x1xf32> { %a = stablehlo.constant dense<[[[3.0]],
  [[8.0]]]> : tensor<2x1x1xf32> %z = "stablehlo.triangular_solve"(%a, %a) <{left_side = true,
  lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> :
  (tensor<2x1x1xf32>, tensor<2x1x1xf32>) -> tensor<2x1x1xf32> return %z : tensor<2x1x1xf32> }"""
if os.fork():
    raise SystemExit(int(os.wait()[1] != 0))
with make_ir_context() as context:
    stablehlo.register_interpreter_dialect(context)
    stablehlo.eval_module(ir.Module.parse(TEXT), [])
os._exit(0)
