# Cast of -0 from float8e4m3fn to bool gives true.
# Class B: ONNX's Cast: "bool: +/- 0.0 to False", and all else to True; special values. Wrong in
# onnxruntime 1.32.0 (2026-11-24).
# By hand: -0 is a zero: false.
import numpy as np
import onnx.parser
import onnxruntime as ort

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (float[2] x) => (bool[2] y) { z = Cast<to = 17>(x) y = Cast<to = 9>(z) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
got = session.run(None, {"x": np.array([-0.0, 0.0], np.float32)})[0]
print("-0, +0 become", got, "expected False False")
raise SystemExit(int(got.any()))
