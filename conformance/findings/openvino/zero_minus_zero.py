# 0 - x is computed as -x, also where x is 0.
# Class A, constant against input; special values. Wrong in openvino 2026.4.1 (2026-11-24).
# By hand: 0 - 0 is +0 by IEEE 754-2019 6.3, and -0 is the other zero.
import numpy as np
import onnx.parser
import openvino as ov

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (float[1] x, float[1] o) => (float[1] y, float[1] z) <float[1] c = {0.0}>
{ y = Sub(c, x) z = Sub(o, x) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
core = ov.Core()
compiled = core.compile_model(
    core.read_model(model, b""), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
)
x = np.zeros(1, np.float32)
y, z = compiled([x, x]).values()
print("constant - x =", y[0], "input - x =", z[0])
raise SystemExit(int(np.signbit(y[0]) != np.signbit(z[0])))
