# Sin and Cos of a double depend on how many there are: two are computed with 35 right bits of 53.
# Class A, one element against two; ordinary values. Wrong in onnxruntime 1.32.0 (2026-11-24).
# By hand: x = -2 pi + 0.0001200856432337, so its sine is that of the small number y, y - y**3/6,
# however many there are.
import numpy as np
import onnx.parser
import onnxruntime as ort

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (double[1] x, double[2] xs) => (double[1] y, double[2] ys) { y = Sin(x) ys = Sin(xs) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
x = np.array([-6.2830652215363525])
alone, pair = session.run(None, {"x": x, "xs": np.repeat(x, 2)})
print("alone", alone[0], "of two", pair[0])
raise SystemExit(int(abs(pair[0] / alone[0] - 1) > 1e-15))
