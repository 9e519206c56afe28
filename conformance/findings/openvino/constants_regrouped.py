# (x + c) - c is computed as x + (c - c).
# Class A, constants against inputs; ordinary values; algebra. Wrong in openvino 2026.4.1
# (2026-11-24).
# By hand: 1 + 1e8 is 1e8, since float32 numbers there are 8 apart, and 1e8 - 1e8 is 0.
import numpy as np
import onnx.parser
import openvino as ov

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (float[1] x, float[1] b) => (float[1] y, float[1] z) <float[1] c = {100000000.0}>
{ s = Add(x, c) y = Sub(s, c) t = Add(x, b) z = Sub(t, b) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
core = ov.Core()
compiled = core.compile_model(
    core.read_model(model, b""), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
)
y, z = compiled([np.ones(1, np.float32), np.array([1e8], np.float32)]).values()
print("with constants", y[0], "with inputs", z[0])
raise SystemExit(int(y[0] != z[0]))
