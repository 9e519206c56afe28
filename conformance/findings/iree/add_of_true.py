# The sum of true and true is false: booleans are added as XOR, also in a reduce.
# Class B: StableHLO's spec of add: "For booleans: logical OR"; ordinary values. Wrong in
# iree-base-compiler 3.13.0 (2026-11-24).
# By hand: true or true is true.
import numpy as np
from iree import compiler, runtime

TEXT = """func.func @main(%x: tensor<1xi1>) -> tensor<1xi1> {
  %0 = stablehlo.add %x, %x : tensor<1xi1>
  return %0 : tensor<1xi1> }"""
code = compiler.compile_str(TEXT, input_type="stablehlo", target_backends=["llvm-cpu"])
got = runtime.load_vm_flatbuffer(code, driver="local-sync").main(np.array([True])).to_host()
print(np.asarray(got))
raise SystemExit(int(not np.asarray(got)[0]))
