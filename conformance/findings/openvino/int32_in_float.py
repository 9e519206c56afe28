# Equal and other ops of int32 are computed in float32.
# Class B: ONNX's Equal: it takes tensor(int32); ordinary values. Wrong in openvino 2026.4.1
# (2026-11-24).
# By hand: 16777217 and 16777216 are different integers; float32 has 24 bits and makes 16777216 of
# both. Less, Div, Mod and BitShift alike.
import numpy as np
import onnx.parser
import openvino as ov

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (int32[1] a, int32[1] b) => (bool[1] y) { y = Equal(a, b) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
core = ov.Core()
compiled = core.compile_model(
    core.read_model(model, b""), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
)
got = compiled([np.array([16777217], np.int32), np.array([16777216], np.int32)])[0]
print("Equal(16777217, 16777216) =", got[0], "expected", False)
raise SystemExit(int(got[0]))
