# A module that returns complex numbers ends the process of eval_module.
# Class A, complex against real; ordinary values; crash. Wrong in jaxlib 0.10.2 (2026-11-24).
# By hand: the constant 1 + 2j is its own value.
import os

from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

TEXT = """func.func @main() -> tensor<complex<f32>> { %z = stablehlo.constant dense<(1.0, 2.0)> :
  tensor<complex<f32>> return %z : tensor<complex<f32>> }"""
if os.fork():
    raise SystemExit(int(os.wait()[1] != 0))
with make_ir_context() as context:
    stablehlo.register_interpreter_dialect(context)
    stablehlo.eval_module(ir.Module.parse(TEXT), [])
os._exit(0)
