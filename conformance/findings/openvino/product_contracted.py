# A product and a sum become one fused operation.
# Class A, fused against split; ordinary values; algebra. Wrong in openvino 2026.4.1 (2026-11-24).
# By hand: 0.1 as a float32 is 0.1 + 1.5e-9; times 10 that is 1 + 1.5e-8, which rounds to 1, and
# minus 1 that is 0.
import numpy as np
import onnx.parser
import openvino as ov

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (float[1] a, float[1] b, float[1] c) => (float[1] y) { p = Mul(a, b) y = Add(p, c) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
core = ov.Core()
compiled = core.compile_model(
    core.read_model(model, b""), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
)
a, b, c = (np.array([v], np.float32) for v in (0.1, 10, -1))
got = compiled([a, b, c])[0]
print("0.1 * 10 - 1 =", got[0], "split:", (a * b + c)[0])
raise SystemExit(int(got[0] != 0))
