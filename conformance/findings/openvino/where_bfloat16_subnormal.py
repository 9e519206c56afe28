# Where makes 0 of a subnormal bfloat16 that it selects.
# Class B: ONNX's Where: "Return elements, either from X or Y"; special values. Wrong in openvino
# 2026.4.1 (2026-11-24).
# By hand: the condition is true, so the result is the element of X, 2**-133.
import numpy as np
import onnx.parser
import openvino as ov

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (bool[1] c, bfloat16[1] x) => (float[1] y) { z = Where(c, x, x) y = Cast<to = 1>(z) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
core = ov.Core()
compiled = core.compile_model(
    core.read_model(model, b""), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
)
x = ov.Tensor(np.array([1], np.uint16), [1], ov.Type.bf16)
got = compiled([np.array([True]), x])[0]
print("2**-133 becomes", got[0])
raise SystemExit(int(got[0] == 0))
