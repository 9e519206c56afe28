# Max of a NaN and a number depends on their order.
# Class A, operands exchanged; special values. Wrong in openvino 2026.4.1 (2026-11-24).
# By hand: a maximum does not depend on the order of its operands.
import numpy as np
import onnx.parser
import openvino as ov

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (float[1] a, float[1] b) => (float[1] y, float[1] z) { y = Max(a, b) z = Max(b, a) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
core = ov.Core()
compiled = core.compile_model(
    core.read_model(model, b""), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
)
y, z = compiled([np.array([np.nan], np.float32), np.ones(1, np.float32)]).values()
print("Max(nan, 1) =", y[0], "Max(1, nan) =", z[0])
raise SystemExit(int(np.isnan(y[0]) != np.isnan(z[0])))
