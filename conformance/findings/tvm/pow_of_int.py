# Pow of int32 is refused, as that of bfloat16 is.
# Class B: ONNX's Pow: it takes tensor(int32); ordinary values; crash. Wrong in apache-tvm
# 0.27.0.post1 (2026-11-24).
# By hand: 3 * 3 * 3 = 27.
import numpy as np
import onnx.parser
import tvm
from tvm.relax import VirtualMachine
from tvm.relax.frontend.onnx import from_onnx

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (int32[1] x) => (int32[1] y) { y = Pow(x, x) }"""
module = from_onnx(onnx.parser.parse_model(MODEL), keep_params_in_input=False)
try:
    run = VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())["main"]
except (RuntimeError, TypeError) as error:
    raise SystemExit(int(not print(type(error).__name__))) from None
got = run(tvm.runtime.tensor(np.array([3], np.int32))).numpy()
raise SystemExit(int(got[0] != 27))
