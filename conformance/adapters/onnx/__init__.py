"""ONNX: tensor programs as models, and models as tensor programs."""
