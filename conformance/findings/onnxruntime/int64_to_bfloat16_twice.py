# Cast of int64 to bfloat16 rounds to float32 first.
# Class B: IEEE 754-2019 5.4.1, convertFromInt rounds once; ordinary values. Wrong in onnxruntime
# 1.32.0 (2026-11-24).
# By hand: 16842753 = 2**24 + 2**16 + 1 lies above the middle of 2**24 and 2**24 + 2**17 =
# 16908288.
import numpy as np
import onnx.parser
import onnxruntime as ort

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (int64[1] x) => (float[1] y) { z = Cast<to = 16>(x) y = Cast<to = 1>(z) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
got = session.run(None, {"x": np.array([16842753])})[0]
print("16842753 becomes", got[0], "expected 16908288")
raise SystemExit(int(got[0] != 16908288))
