# The reversal of unsigned integers does not compile.
# Class B: StableHLO's spec of reverse takes a "tensor or per-tensor quantized tensor"; ordinary
# values; crash. Wrong in iree-base-compiler 3.13.0 (2026-11-24).
# By hand: 1, 2, 3 in the reverse order is 3, 2, 1; signed integers compile.
import numpy as np
from iree import compiler, runtime

TEXT = """func.func @main(%x: tensor<3xui16>) -> tensor<3xui16> {
  %0 = stablehlo.reverse %x, dims = [0] : tensor<3xui16>
  return %0 : tensor<3xui16> }"""
try:
    code = compiler.compile_str(TEXT, input_type="stablehlo", target_backends=["llvm-cpu"])
except compiler.CompilerToolError as error:
    print(error)
    raise SystemExit(1) from None
module = runtime.load_vm_flatbuffer(code, driver="local-sync")
print(module.main(np.array([1, 2, 3], np.uint16)).to_host())
