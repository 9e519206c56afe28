# Max of a NaN and a number depends on their order.
# Class A, operands exchanged; special values. Wrong in apache-tvm 0.27.0.post1 (2026-11-24).
# By hand: a maximum does not depend on the order of its operands.
import numpy as np
import onnx.parser
import tvm
from tvm.relax import VirtualMachine
from tvm.relax.frontend.onnx import from_onnx

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (float[1] a, float[1] b) => (float[1] y, float[1] z) { y = Max(a, b) z = Max(b, a) }"""
module = from_onnx(onnx.parser.parse_model(MODEL), keep_params_in_input=False)
run = VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())["main"]
a, b = np.array([np.nan], np.float32), np.ones(1, np.float32)
y, z = (r.numpy()[0] for r in run(tvm.runtime.tensor(a), tvm.runtime.tensor(b)))
print("Max(nan, 1) =", y, "Max(1, nan) =", z)
raise SystemExit(int(np.isnan(y) != np.isnan(z)))
