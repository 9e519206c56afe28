# The floor of an f8E4M3FN does not compile.
# Class B: StableHLO's spec of floor takes a "tensor of floating-point type"; ordinary values;
# crash. Wrong in iree-base-compiler 3.13.0 (2026-11-24).
# By hand: 0x3c is 1.5, whose floor is 1.
import numpy as np
from iree import compiler, runtime

TEXT = """func.func @main(%b: tensor<1xui8>) -> tensor<1xf32> {
  %0 = stablehlo.bitcast_convert %b : (tensor<1xui8>) -> tensor<1xf8E4M3FN>
  %1 = stablehlo.floor %0 : tensor<1xf8E4M3FN>
  %2 = stablehlo.convert %1 : (tensor<1xf8E4M3FN>) -> tensor<1xf32>
  return %2 : tensor<1xf32> }"""
try:
    code = compiler.compile_str(TEXT, input_type="stablehlo", target_backends=["llvm-cpu"])
except compiler.CompilerToolError as error:
    print(error)
    raise SystemExit(1) from None
module = runtime.load_vm_flatbuffer(code, driver="local-sync")
print(module.main(np.array([0x3C], np.uint8)).to_host())
