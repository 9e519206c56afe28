# Cast from double to float16 rounds to float32 first.
# Class B: IEEE 754-2019 5.4.2, convertFormat rounds once; ordinary values. Wrong in onnxruntime
# 1.32.0 (2026-11-24).
# By hand: 1 + 2**-11 is the middle of 1 and 1 + 2**-10; 2**-40 more is nearer to the second.
# Below 65520, the middle of 65504 and infinity, is 65504.
import numpy as np
import onnx.parser
import onnxruntime as ort

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (double[2] x) => (float16[2] y) { y = Cast<to = 10>(x) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
x = np.array([float.fromhex("0x1.ffdffffffffffp+15"), 1 + 2**-11 + 2**-40])
got = session.run(None, {"x": x})[0]
print(got, "expected", x.astype(np.float16))
raise SystemExit(int((got != x.astype(np.float16)).any()))
