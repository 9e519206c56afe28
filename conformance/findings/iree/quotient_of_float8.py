# A quotient of f8E5M2 that is subnormal is 0.
# Class B: StableHLO's spec of divide: "For floats: division from IEEE-754"; ordinary values.
# Wrong in iree-base-compiler 3.13.0 (2026-11-24).
# By hand: 0x1f is 7 * 2**-10 and 0x58 is 2**7; 3.5 * 2**-16 lies between 3 and 4 times 2**-16, the
# smallest number, and a tie goes to the even 4.
import numpy as np
from iree import compiler, runtime

TEXT = """func.func @main(%b: tensor<2xui8>) -> tensor<1xf32> {
  %0 = stablehlo.bitcast_convert %b : (tensor<2xui8>) -> tensor<2xf8E5M2>
  %1 = stablehlo.slice %0 [0:1] : (tensor<2xf8E5M2>) -> tensor<1xf8E5M2>
  %2 = stablehlo.slice %0 [1:2] : (tensor<2xf8E5M2>) -> tensor<1xf8E5M2>
  %3 = stablehlo.divide %1, %2 : tensor<1xf8E5M2>
  %4 = stablehlo.convert %3 : (tensor<1xf8E5M2>) -> tensor<1xf32>
  return %4 : tensor<1xf32> }"""
code = compiler.compile_str(TEXT, input_type="stablehlo", target_backends=["llvm-cpu"])
got = runtime.load_vm_flatbuffer(code, driver="local-sync").main(np.array([31, 88], np.uint8))
raise SystemExit(int(print(got.to_host()) or got.to_host()[0] != 4 * 2.0**-16))
