# Add of double is computed in float32.
# Class B: ONNX's Add: it takes and gives tensor(double); ordinary values. Wrong in openvino
# 2026.4.1 (2026-11-24).
# By hand: (1 + 2**-40) + 1 = 2 + 2**-40, whose 42 bits are a double.
import numpy as np
import onnx.parser
import openvino as ov

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (double[1] a, double[1] b) => (double[1] y) { y = Add(a, b) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
core = ov.Core()
compiled = core.compile_model(
    core.read_model(model, b""), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
)
got = compiled([np.array([1 + 2**-40], np.float64), np.array([1.0], np.float64)])[0]
print("Add(1 + 2**-40, 1.0) =", got[0], "expected", 2 + 2**-40)
raise SystemExit(int(got[0] != 2 + 2**-40))
