# Cast of 480 to float8e4m3fn with saturate = 0 gives 448.
# Class B: ONNX's Cast: for saturate false the table gives NaN for what is above the largest
# value; ordinary values. Wrong in onnxruntime 1.32.0 (2026-11-24).
# By hand: the largest float8e4m3fn is 448; the next in its steps of 32 would be 480, whose bits
# are the NaN.
import numpy as np
import onnx.parser
import onnxruntime as ort

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (float[2] x) => (float[2] y) { z = Cast<to = 17, saturate = 0>(x) y = Cast<to = 1>(z) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
got = session.run(None, {"x": np.array([480, 465], np.float32)})[0]
print("480, 465 become", got, "expected nan nan")
raise SystemExit(int(not np.isnan(got).all()))
