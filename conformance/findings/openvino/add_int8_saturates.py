# Add and other ops of int8 and uint8 saturate, where those of int16 wrap.
# Class A, int8 against int16; ordinary values. Wrong in openvino 2026.4.1 (2026-11-24).
# By hand: 80 + 71 = 151 = 256 - 105, and ONNX's reference evaluator gives -105.
import numpy as np
import onnx.parser
import openvino as ov

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (int8[1] a, int8[1] b) => (int8[1] y) { y = Add(a, b) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
core = ov.Core()
compiled = core.compile_model(
    core.read_model(model, b""), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
)
got = compiled([np.array([80], np.int8), np.array([71], np.int8)])[0]
print("Add(80, 71) =", got[0], "expected", -105)
raise SystemExit(int(got[0] != -105))
