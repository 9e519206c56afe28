# A subnormal constant becomes 0, the same number as an input does not.
# Class A, constant against input; special values. Wrong in openvino 2026.4.1 (2026-11-24).
# By hand: 2**-149 is the smallest float32, and Identity gives its input.
import numpy as np
import onnx.parser
import openvino as ov

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (float[1] x) => (float[1] y, float[1] z) <float[1] c = {1.401298464324817e-45}>
{ y = Identity(c) z = Identity(x) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
core = ov.Core()
compiled = core.compile_model(
    core.read_model(model, b""), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
)
y, z = compiled([np.array([2.0**-149], np.float32)]).values()
print("constant", y[0], "input", z[0])
raise SystemExit(int(y[0] != z[0]))
