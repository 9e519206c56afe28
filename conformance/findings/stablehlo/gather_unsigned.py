# gather and scatter take an unsigned start index from half of its range on for a negative one.
# Class B: StableHLO's spec of gather: "clamp(start_index[d_start], 0, dim(operand, d_operand) -
# slice_sizes[d_operand])"; ordinary values. Wrong in jaxlib 0.10.2 (2026-11-24).
# By hand: clamp(200, 0, 256 - 1) = 200, and element 200 of 0, 1, 2 ... is 200.
import numpy as np
from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

TEXT = """func.func @main() -> tensor<1xi32> { %x = stablehlo.iota dim = 0 : tensor<256xi32>
  %i = stablehlo.constant dense<200> : tensor<1xui8>
  %z = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims =
    [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> :
    (tensor<256xi32>, tensor<1xui8>) -> tensor<1xi32> return %z : tensor<1xi32> }"""
with make_ir_context() as context:
    stablehlo.register_interpreter_dialect(context)
    got = np.array(stablehlo.eval_module(ir.Module.parse(TEXT), [])[0])
print(got.tolist())
raise SystemExit(int(got.item() != 200))
