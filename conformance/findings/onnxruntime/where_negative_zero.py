# Where makes +0 of a -0 that it selects.
# Class B: ONNX's Where: "Return elements, either from X or Y"; special values. Wrong in
# onnxruntime 1.32.0 (2026-11-24).
# By hand: the condition is true, so the result is the element of X, -0.
import numpy as np
import onnx.parser
import onnxruntime as ort

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (bool[1] c, float[1] x, float[1] y) => (float[1] z) { z = Where(c, x, y) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
feeds = {"c": np.array([True]), "x": np.array([-0.0], np.float32), "y": np.ones(1, np.float32)}
got = session.run(None, feeds)[0]
print("Where(true, -0.0, 1.0) =", got[0])
raise SystemExit(not np.signbit(got[0]))
