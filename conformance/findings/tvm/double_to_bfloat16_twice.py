# Cast of double to bfloat16 rounds to float32 first.
# Class B: IEEE 754-2019 5.4.2, convertFormat rounds once; ordinary values. Wrong in apache-tvm
# 0.27.0.post1 (2026-11-24).
# By hand: 1 + 2**-8 is the middle of 1 and 1 + 2**-7, and 2**-40 more is nearer to the second.
import numpy as np
import onnx.parser
import tvm
from tvm.relax import VirtualMachine
from tvm.relax.frontend.onnx import from_onnx

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (double[1] x) => (float[1] y) { z = Cast<to = 16>(x) y = Cast<to = 1>(z) }"""
module = from_onnx(onnx.parser.parse_model(MODEL), keep_params_in_input=False)
run = VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())["main"]
got = run(tvm.runtime.tensor(np.array([1 + 2**-8 + 2**-40]))).numpy()
print(got[0], "expected", 1 + 2**-7)
raise SystemExit(int(got[0] != 1 + 2**-7))
