# ReduceMax of bools is refused.
# Class B: ONNX's ReduceMax: it takes tensor(bool); ordinary values; crash. Wrong in apache-tvm
# 0.27.0.post1 (2026-11-24).
# By hand: the larger of true and false is true.
import numpy as np
import onnx.parser
import tvm
from tvm.relax import VirtualMachine
from tvm.relax.frontend.onnx import from_onnx

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (bool[2] x) => (bool[1] y) <int64[1] axes = {0}> { y = ReduceMax(x, axes) }"""
module = from_onnx(onnx.parser.parse_model(MODEL), keep_params_in_input=False)
try:
    run = VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())["main"]
except (RuntimeError, TypeError) as error:
    raise SystemExit(int(not print(type(error).__name__))) from None
got = run(tvm.runtime.tensor(np.array([True, False]))).numpy()
raise SystemExit(int(not got[0]))
