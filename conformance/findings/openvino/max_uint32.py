# Max, Min and Greater take a uint32 above 2**31 for a negative number.
# Class B: ONNX's Max: it takes tensor(uint32); ordinary values. Wrong in openvino 2026.4.1
# (2026-11-24).
# By hand: the larger of 1 and 4294967290 is the second.
import numpy as np
import onnx.parser
import openvino as ov

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (uint32[1] a, uint32[1] b) => (uint32[1] y) { y = Max(a, b) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
core = ov.Core()
compiled = core.compile_model(
    core.read_model(model, b""), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
)
got = compiled([np.array([1], np.uint32), np.array([4294967290], np.uint32)])[0]
print("Max(1, 4294967290) =", got[0], "expected", 4294967290)
raise SystemExit(int(got[0] != 4294967290))
