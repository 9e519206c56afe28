# ReduceMax ignores a NaN that Max propagates.
# Class A, ReduceMax against Max; special values. Wrong in onnxruntime 1.32.0 (2026-11-24).
# By hand: numpy, which ONNX's reference evaluator follows, makes a NaN of a maximum with a NaN.
import numpy as np
import onnx.parser
import onnxruntime as ort

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (float[2] x, float[1] a, float[1] b) => (float[1] y, float[1] z) <int64[1] axes = {0}>
{ y = ReduceMax(x, axes) z = Max(a, b) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
v = np.array([1, np.nan], np.float32)
folded, larger = session.run(None, {"x": v, "a": v[:1], "b": v[1:]})
print("ReduceMax", folded[0], "Max", larger[0])
raise SystemExit(int(not np.isnan(folded[0])))
