# A Cast to float16 is dropped before an op on float16, which is computed in float32.
# Class A, fused against split; ordinary values. Wrong in onnxruntime 1.32.0 (2026-11-24).
# By hand: float16 numbers near 1 are 2**-10 = 0.00098 apart, so 1.0001 becomes 1, as the Cast
# alone gives. Where, Add and others alike.
import numpy as np
import onnx.parser
import onnxruntime as ort

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (float[1] x, float16[1] one) => (bool[1] y, float16[1] z)
{ z = Cast<to = 10>(x) w = Cast<to = 10>(x) y = Equal(w, one) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
feeds = {"x": np.array([1.0001], np.float32), "one": np.array([1], np.float16)}
equal, cast = session.run(None, feeds)
print("float16(1.0001) =", cast[0], "but == 1 is", equal[0])
raise SystemExit(int(not equal[0]))
