# Cast of a small float to float8e5m2 and back gives 2**-15.
# Class B: IEEE 754-2019 5.4.2, convertFormat rounds to the nearest; ordinary values. Wrong in
# apache-tvm 0.27.0.post1 (2026-11-24).
# By hand: the smallest float8e5m2 is 2**-16, so 2**-40 is nearer to 0.
import numpy as np
import onnx.parser
import tvm
from tvm.relax import VirtualMachine
from tvm.relax.frontend.onnx import from_onnx

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (float[1] x) => (float[1] y) { z = Cast<to = 19>(x) y = Cast<to = 1>(z) }"""
module = from_onnx(onnx.parser.parse_model(MODEL), keep_params_in_input=False)
run = VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())["main"]
got = run(tvm.runtime.tensor(np.array([-(2.0**-40)], np.float32))).numpy()
print("-2**-40 by way of float8e5m2:", got[0])
raise SystemExit(int(got[0] != 0))
