# Cast of a NaN to bool gives false.
# Class B: ONNX's Cast: "bool: +/- 0.0 to False", and all else to True; special values. Wrong in
# openvino 2026.4.1 (2026-11-24).
# By hand: a NaN is no zero: true.
import numpy as np
import onnx.parser
import openvino as ov

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (float[1] x) => (bool[1] y) { y = Cast<to = 9>(x) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
core = ov.Core()
compiled = core.compile_model(
    core.read_model(model, b""), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
)
got = compiled([np.array([np.nan], np.float32)])[0]
print("bool(nan) =", got[0])
raise SystemExit(int(not got[0]))
