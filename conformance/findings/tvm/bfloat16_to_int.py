# Cast of bfloat16 to int32 is refused.
# Class B: ONNX's Cast: "from a numerical type to any numerical type is always allowed"; ordinary
# values; crash. Wrong in apache-tvm 0.27.0.post1 (2026-11-24).
# By hand: 2.5 without its fraction is 2.
import numpy as np
import onnx.parser
import tvm
from tvm.relax import VirtualMachine
from tvm.relax.frontend.onnx import from_onnx

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (float[1] x) => (int32[1] y) { z = Cast<to = 16>(x) y = Cast<to = 6>(z) }"""
module = from_onnx(onnx.parser.parse_model(MODEL), keep_params_in_input=False)
try:
    run = VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())["main"]
except (RuntimeError, TypeError) as error:
    raise SystemExit(int(not print(type(error).__name__))) from None
got = run(tvm.runtime.tensor(np.array([2.5], np.float32))).numpy()
raise SystemExit(int(got[0] != 2))
