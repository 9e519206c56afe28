# Sigmoid of -17.5 is five times too large, and of a double below -40 it is 0.
# Class B: ONNX's Sigmoid: "y = 1 / (1 + exp(-x))"; ordinary values. Wrong in onnxruntime 1.32.0
# (2026-11-24).
# By hand: exp(-17.513742) = exp(-17) * exp(-0.513742) = 4.14e-8 * 0.598 = 2.48e-8, and 1 +
# exp(17.5) is exp(17.5) to 8 digits.
import numpy as np
import onnx.parser
import onnxruntime as ort

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (float[1] x, double[1] d) => (float[1] y, double[1] z) { y = Sigmoid(x) z = Sigmoid(d) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
x, d = np.array([-17.513742], np.float32), np.array([-40.0])
y, z = session.run(None, {"x": x, "d": d})
print(y[0], z[0], "expected", (1 / (1 + np.exp(-x)))[0], (1 / (1 + np.exp(-d)))[0])
raise SystemExit(int(y[0] > 5e-8 or z[0] == 0))
