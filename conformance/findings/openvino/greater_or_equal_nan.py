# GreaterOrEqual of a NaN is true.
# Class B: IEEE 754-2019 5.11, a NaN compares unordered with everything; special values. Wrong in
# openvino 2026.4.1 (2026-11-24).
# By hand: a NaN is neither above 1 nor equal to it.
import numpy as np
import onnx.parser
import openvino as ov

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (float[1] a, float[1] b) => (bool[1] y) { y = GreaterOrEqual(a, b) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
core = ov.Core()
compiled = core.compile_model(
    core.read_model(model, b""), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
)
got = compiled([np.array([np.nan], np.float32), np.array([1.0], np.float32)])[0]
print("GreaterOrEqual(np.nan, 1.0) =", got[0], "expected", False)
raise SystemExit(int(got[0]))
