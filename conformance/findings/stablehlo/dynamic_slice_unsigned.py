# dynamic_slice takes an unsigned start index from half of its range on for a negative one, which
# is clamped to 0.
# Class B: StableHLO's spec of dynamic_slice: "clamp(0, start_indices, shape(operand) -
# slice_sizes)"; ordinary values. Wrong in jaxlib 0.10.2 (2026-11-24).
# By hand: clamp(0, 200, 256 - 1) = 200, and element 200 of 0, 1, 2 ... is 200.
# dynamic_update_slice alike.
import numpy as np
from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

TEXT = """func.func @main() -> tensor<1xi32> { %x = stablehlo.iota dim = 0 : tensor<256xi32>
  %i = stablehlo.constant dense<200> : tensor<ui8>
  %z = stablehlo.dynamic_slice %x, %i, sizes = [1] : (tensor<256xi32>, tensor<ui8>) ->
    tensor<1xi32> return %z : tensor<1xi32> }"""
with make_ir_context() as context:
    stablehlo.register_interpreter_dialect(context)
    got = np.array(stablehlo.eval_module(ir.Module.parse(TEXT), [])[0])
print(got.tolist())
raise SystemExit(int(got.item() != 200))
