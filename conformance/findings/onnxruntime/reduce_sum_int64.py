# ReduceSum adds int64 in floating point.
# Class B: ONNX's ReduceSum: it takes and gives tensor(int64); ordinary values. Wrong in
# onnxruntime 1.32.0 (2026-11-24).
# By hand: 2**53 + 1 is odd; double has 53 bits, and only even numbers there. ReduceProd, ReduceL1
# and others alike.
import numpy as np
import onnx.parser
import onnxruntime as ort

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (int64[2] x) => (int64[1] y) <int64[1] axes = {0}> { y = ReduceSum(x, axes) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
got = session.run(None, {"x": np.array([2**53, 1])})[0]
print("2**53 + 1 =", got[0], "expected", 2**53 + 1)
raise SystemExit(int(got[0] != 2**53 + 1))
