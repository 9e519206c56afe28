# triangular_solve with the adjoint of real numbers ends the process.
# Class B: StableHLO's spec of triangular_solve takes ADJOINT for "floating-point or complex
# type"; ordinary values; crash. Wrong in jaxlib 0.10.2 (2026-11-24).
# By hand: the adjoint of (2) is (2), and 2 * x = 2 has the solution 1.
import os

from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

TEXT = """func.func @main() -> tensor<1x1xf32> { %a = stablehlo.constant dense<2.0> :
  tensor<1x1xf32> %z = "stablehlo.triangular_solve"(%a, %a) <{left_side = true, lower = true,
  unit_diagonal = false, transpose_a = #stablehlo<transpose ADJOINT>}> : (tensor<1x1xf32>,
  tensor<1x1xf32>) -> tensor<1x1xf32> return %z : tensor<1x1xf32> }"""
if os.fork():
    raise SystemExit(int(os.wait()[1] != 0))
with make_ir_context() as context:
    stablehlo.register_interpreter_dialect(context)
    stablehlo.eval_module(ir.Module.parse(TEXT), [])
os._exit(0)
