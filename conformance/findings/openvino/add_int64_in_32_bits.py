# Add of int64 is computed in 32 bits.
# Class B: ONNX's Add: it takes and gives tensor(int64); ordinary values. Wrong in openvino
# 2026.4.1 (2026-11-24).
# By hand: 1099511627777 = 2**40 + 1, and 5 more is 1099511627782; modulo 2**32 it is 6.
import numpy as np
import onnx.parser
import openvino as ov

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (int64[1] a, int64[1] b) => (int64[1] y) { y = Add(a, b) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
core = ov.Core()
compiled = core.compile_model(
    core.read_model(model, b""), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
)
got = compiled([np.array([1099511627777], np.int64), np.array([5], np.int64)])[0]
print("Add(1099511627777, 5) =", got[0], "expected", 1099511627782)
raise SystemExit(int(got[0] != 1099511627782))
