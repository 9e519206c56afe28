# Tanh of -8.525172 is below -1.
# Class B: ONNX's Tanh: the hyperbolic tangent; ordinary values. Wrong in onnxruntime 1.32.0
# (2026-11-24).
# By hand: tanh(x) = 1 - 2 / (exp(2 x) + 1) lies between -1 and 1.
import numpy as np
import onnx.parser
import onnxruntime as ort

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (float[1] x) => (float[1] y) { y = Tanh(x) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
got = session.run(None, {"x": np.array([-8.525172], np.float32)})[0]
print(f"tanh(-8.525172) = {got[0]:.9g}")
raise SystemExit(int(abs(got[0]) > 1))
