# (x * c) * d is computed as x * (c * d), without the overflow of the first.
# Class A, constants against inputs; ordinary values; algebra. Wrong in openvino 2026.4.1
# (2026-11-24).
# By hand: 1e30 * 1e30 is above the largest float32, 3.4e38, so infinite, and times 1e-30 too.
import numpy as np
import onnx.parser
import openvino as ov

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (float[1] x, float[1] a, float[1] b) => (float[1] y, float[1] z) <float[1] c = {1e30},
float[1] d = {1e-30}> { s = Mul(x, c) y = Mul(s, d) t = Mul(x, a) z = Mul(t, b) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
core = ov.Core()
compiled = core.compile_model(
    core.read_model(model, b""), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
)
feeds = [np.array([v], np.float32) for v in (1e30, 1e30, 1e-30)]
y, z = compiled(feeds).values()
print("with constants", y[0], "with inputs", z[0])
raise SystemExit(int(y[0] != z[0]))
