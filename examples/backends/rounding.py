"""A toy with CAST and one fault: it rounds a float to an integer, where the spec truncates."""

import numpy as np

from uop import Op, parse
from uop.conformance.protocol import Hello, Outputs

OPS, DTYPES = frozenset({"PARAM", "ADD", "CAST"}), frozenset({"float32", "int32"})


class Rounding:
    def hello(self):
        return Hello("rounding", "1", "numpy", OPS, DTYPES)

    def run(self, programs):
        return [Outputs(tuple((value(parse(p.text), b),) for b in p.batches)) for p in programs]


def value(u, x):
    if u.op is Op.PARAM:
        return x[u.arg.slot]
    a, *b = (value(s, x) for s in u.src)
    if u.op is Op.ADD:
        return a + b[0]
    return (a if u.dtype.is_float else np.rint(a)).astype(u.dtype.name)
