# Cast of 0 from float8e4m3fn to float gives 0.0078125.
# Class B: ONNX's Cast: it converts values; special values. Wrong in apache-tvm 0.27.0.post1
# (2026-11-24).
# By hand: 0 is a number of both types.
import numpy as np
import onnx.parser
import tvm
from tvm.relax import VirtualMachine
from tvm.relax.frontend.onnx import from_onnx

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (float[2] x) => (float[2] y) { z = Cast<to = 17>(x) y = Cast<to = 1>(z) }"""
module = from_onnx(onnx.parser.parse_model(MODEL), keep_params_in_input=False)
run = VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())["main"]
got = run(tvm.runtime.tensor(np.array([0, 1], np.float32))).numpy()
print("0, 1 by way of float8e4m3fn:", got)
raise SystemExit(int((got != [0, 1]).any()))
