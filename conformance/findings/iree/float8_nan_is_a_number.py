# The conversion of the NaN of f8E4M3FN with a sign gives -480.
# Class B: StableHLO's spec of types names the E4M3FN of arXiv 2209.05433, whose table 1 has the NaN
# S.1111.111; special values. Wrong in iree-base-compiler 3.13.0 (2026-11-24).
# By hand: all bits of 0xff are set, so it is the NaN, and a conversion of a NaN is a NaN.
import numpy as np
from iree import compiler, runtime

TEXT = """func.func @main(%b: tensor<1xui8>) -> tensor<1xf32> {
  %0 = stablehlo.bitcast_convert %b : (tensor<1xui8>) -> tensor<1xf8E4M3FN>
  %1 = stablehlo.convert %0 : (tensor<1xf8E4M3FN>) -> tensor<1xf32>
  return %1 : tensor<1xf32> }"""
code = compiler.compile_str(TEXT, input_type="stablehlo", target_backends=["llvm-cpu"])
module = runtime.load_vm_flatbuffer(code, driver="local-sync")
got = module.main(np.array([0xFF], np.uint8)).to_host()
print(np.asarray(got))
raise SystemExit(int(not np.isnan(np.asarray(got)[0])))
