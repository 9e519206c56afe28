# log_plus_one of a complex number computes what the real one avoids, and loses half of the
# digits.
# Class A, complex against real; ordinary values. Wrong in jaxlib 0.10.2 (2026-11-24).
# By hand: for x = 1e-10 the logarithm of 1 + x is x - x**2/2 + ... = 9.9999999995e-11.
import numpy as np
from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

TEXT = """func.func @main() -> tensor<f64> { %a = stablehlo.constant dense<1.0e-10> : tensor<f64>
  %x = stablehlo.convert %a : (tensor<f64>) -> tensor<complex<f64>>
  %y = stablehlo.log_plus_one %x : tensor<complex<f64>>
  %z = stablehlo.real %y : (tensor<complex<f64>>) -> tensor<f64> return %z : tensor<f64> }"""
with make_ir_context() as context:
    stablehlo.register_interpreter_dialect(context)
    got = np.array(stablehlo.eval_module(ir.Module.parse(TEXT), [])[0])
print(got.tolist())
raise SystemExit(int(abs(got.item() - np.log1p(1e-10)) > 1e-20))
