# Equal of bools is refused.
# Class B: ONNX's Equal: it takes tensor(bool); ordinary values; crash. Wrong in apache-tvm
# 0.27.0.post1 (2026-11-24).
# By hand: true equals true, and false does not.
import numpy as np
import onnx.parser
import tvm
from tvm.relax import VirtualMachine
from tvm.relax.frontend.onnx import from_onnx

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (bool[2] a, bool[2] b) => (bool[2] y) { y = Equal(a, b) }"""
module = from_onnx(onnx.parser.parse_model(MODEL), keep_params_in_input=False)
try:
    run = VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())["main"]
except (RuntimeError, TypeError) as error:
    raise SystemExit(int(not print(type(error).__name__))) from None
a, b = np.array([True, False]), np.array([True, True])
got = run(tvm.runtime.tensor(a), tvm.runtime.tensor(b)).numpy()
raise SystemExit(int((got != [True, False]).any()))
