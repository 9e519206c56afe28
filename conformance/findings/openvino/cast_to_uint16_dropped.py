# A Cast of an integer to uint16 is dropped before Max.
# Class B: ONNX's Cast: "when OOR, discard higher bits and reinterpret"; ordinary values. Wrong in
# openvino 2026.4.1 (2026-11-24).
# By hand: the lower 16 bits of the input are 16448, and the larger of 16448 and 3 is 16448.
import numpy as np
import onnx.parser
import openvino as ov

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (int32[1] x, uint16[1] b) => (uint16[1] y) { z = Cast<to = 4>(x) y = Max(z, b) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
core = ov.Core()
compiled = core.compile_model(
    core.read_model(model, b""), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
)
got = compiled([np.array([-204652480], np.int32), np.array([3], np.uint16)])[0]
print("Max(uint16(-204652480), 3) =", got[0], "expected 16448")
raise SystemExit(int(got[0] != 16448))
