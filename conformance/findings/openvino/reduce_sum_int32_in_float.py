# ReduceSum and ReduceMax of int32 are computed in float32.
# Class B: ONNX's ReduceSum: it takes and gives tensor(int32); ordinary values. Wrong in openvino
# 2026.4.1 (2026-11-24).
# By hand: 16777217 + 1 = 16777218, and float32 has 16777216 for the first.
import numpy as np
import onnx.parser
import openvino as ov

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (int32[2] x) => (int32[1] y) <int64[1] axes = {0}> { y = ReduceSum(x, axes) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
core = ov.Core()
compiled = core.compile_model(
    core.read_model(model, b""), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
)
got = compiled([np.array([16777217, 1], np.int32)])[0]
print("16777217 + 1 =", got[0])
raise SystemExit(int(got[0] != 16777218))
