"""Reads ONNX models: one rule for each op, on Tensors; ops that ONNX composes are expanded."""
