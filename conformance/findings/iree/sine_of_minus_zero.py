# The sine of -0.0 in float16 is 0.0.
# Class B: StableHLO's spec of sine: "For floats: sin from IEEE-754", which gives -0 (9.2.1);
# special values. Wrong in iree-base-compiler 3.13.0 (2026-11-24).
# By hand: sin(-0) is -0 by IEEE 754-2019 9.2.1, and its sign bit is set.
import numpy as np
from iree import compiler, runtime

TEXT = """func.func @main(%x: tensor<1xf16>) -> tensor<1xf16> {
  %0 = stablehlo.sine %x : tensor<1xf16>
  return %0 : tensor<1xf16> }"""
code = compiler.compile_str(TEXT, input_type="stablehlo", target_backends=["llvm-cpu"])
module = runtime.load_vm_flatbuffer(code, driver="local-sync")
got = module.main(np.array([-0.0], np.float16)).to_host()
print(np.asarray(got))
raise SystemExit(int(not np.signbit(np.asarray(got)[0])))
