# A product of float16 that is cast to double is not rounded to float16.
# Class B: ONNX's Mul: the result has the type of the operands, float16; ordinary values. Wrong in
# onnxruntime 1.32.0 (2026-11-24).
# By hand: 11.133 is 11.1328125 as a float16, times 5 that is 55.6640625, and float16 numbers
# there are 2**-5 apart: 55.65625.
import numpy as np
import onnx.parser
import onnxruntime as ort

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (float16[1] a, float16[1] b) => (double[1] y) { p = Mul(a, b) y = Cast<to = 11>(p) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
a, b = np.array([11.133], np.float16), np.array([5], np.float16)
got = session.run(None, {"a": a, "b": b})[0]
print(got[0], "expected", np.float64((a * b)[0]))
raise SystemExit(int(got[0] != np.float64((a * b)[0])))
