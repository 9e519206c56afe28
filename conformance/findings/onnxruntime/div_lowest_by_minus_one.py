# Div of the lowest int64 by -1 ends the process.
# Class A, Div against Mod; special values; crash. Wrong in onnxruntime 1.32.0 (2026-11-24).
# By hand: 2**63 is no int64, and wraps to -2**63; Mod of the same values gives 0.
import os

import numpy as np
import onnx.parser
import onnxruntime as ort

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
g (int64[1] a, int64[1] b) => (int64[1] y) { y = Div(a, b) }"""
model = onnx.parser.parse_model(MODEL).SerializeToString()
if not os.fork():
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    session.run(None, {"a": np.array([-(2**63)]), "b": np.array([-1])})
    os._exit(0)
_, status = os.wait()
print("signal", os.WTERMSIG(status))
raise SystemExit(int(status != 0))
