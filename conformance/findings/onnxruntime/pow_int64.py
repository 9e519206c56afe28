# Pow of int64 is computed in double.
# Class B: ONNX's Pow: "f(x) = x^exponent", of tensor(int64); ordinary values. Wrong in
# onnxruntime 1.32.0 (2026-11-24).
# By hand: 3**39 = 4052555153018976267 is below 2**62; double has 53 bits, and gives a multiple of
# 512 there.
import numpy as np
import onnx.parser
import onnxruntime as ort

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (int64[1] x, int64[1] n) => (int64[1] y) { y = Pow(x, n) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
got = session.run(None, {"x": np.array([3]), "n": np.array([39])})[0]
print("3**39 =", got[0], "expected", 3**39)
raise SystemExit(int(got[0] != 3**39))
