# Cast to float8e5m2 with saturate = 0 makes NaN of what is just above the range.
# Class B: ONNX's Cast: for saturate false the table gives Inf for what is above the largest
# value; ordinary values. Wrong in onnxruntime 1.32.0 (2026-11-24).
# By hand: the largest float8e5m2 is 57344, in steps of 8192; 65535 is nearer to 65536, which is
# out of range: infinity.
import numpy as np
import onnx.parser
import onnxruntime as ort

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (float[2] x) => (float[2] y) { z = Cast<to = 19, saturate = 0>(x) y = Cast<to = 1>(z) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
got = session.run(None, {"x": np.array([65535, 1e5], np.float32)})[0]
print("65535, 1e5 become", got, "expected inf inf")
raise SystemExit(int(not np.isinf(got).all()))
