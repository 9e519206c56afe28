# Max of two negative infinities is the lowest finite number.
# Class B: ONNX's Max: "Element-wise max of each of the input tensors"; special values. Wrong in
# apache-tvm 0.27.0.post1 (2026-11-24).
# By hand: the larger of -infinity and itself is -infinity. Min alike.
import numpy as np
import onnx.parser
import tvm
from tvm.relax import VirtualMachine
from tvm.relax.frontend.onnx import from_onnx

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (float[1] x) => (float[1] y) { y = Max(x, x) }"""
module = from_onnx(onnx.parser.parse_model(MODEL), keep_params_in_input=False)
run = VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())["main"]
got = run(tvm.runtime.tensor(np.array([-np.inf], np.float32))).numpy()
print("Max(-inf, -inf) =", got[0])
raise SystemExit(int(got[0] != -np.inf))
