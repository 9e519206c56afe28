# Where of bools is refused if the condition is also the first branch.
# Class B: ONNX's Where: it takes tensor(bool) for both branches; ordinary values; crash. Wrong in
# openvino 2026.4.1 (2026-11-24).
# By hand: the condition is true, so the result is X, true.
import numpy as np
import onnx.parser
import openvino as ov

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (bool[1] a, bool[1] b) => (bool[1] y) { y = Where(a, a, b) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
core = ov.Core()
try:
    compiled = core.compile_model(core.read_model(model, b""), "CPU")
except RuntimeError as error:
    raise SystemExit(int(not print(str(error).splitlines()[-1]))) from None
got = compiled([np.array([True]), np.array([False])])[0]
raise SystemExit(int(not got[0]))
