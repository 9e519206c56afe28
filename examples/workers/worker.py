"""A worker for float32 arithmetic: reads a request from a line of stdin, writes its reply."""

import itertools
import json
import operator
import sys
from array import array

MEANING = {"ADD": operator.add, "SUB": operator.sub, "MUL": operator.mul, "NEG": operator.neg}
HELLO = {"protocol": 1, "name": "python-example", "version": "1",
         "ops": ["PARAM", *MEANING], "dtypes": ["float32"]}  # fmt: skip


def stretched(values, shape, to):
    """The values of a node broadcast to the shape of its user: axes of size 1 repeat."""
    steps = [0 if n == 1 else len(values) for n in shape]
    for axis, n in enumerate(shape):
        steps[axis:] = [step // max(n, 1) for step in steps[axis:]]
    steps = [0] * (len(to) - len(shape)) + steps
    places = itertools.product(*map(range, to))
    return [values[sum(map(operator.mul, place, steps))] for place in places]


def run(nodes, outputs, inputs):
    done = [None] * len(nodes)  # what a shape is made of needs no value: nodes say their shape
    for k, u in enumerate(nodes):
        if u["op"] == "PARAM":
            done[k] = array("f", bytes.fromhex(inputs[str(u["arg"]["slot"])]["data"]))
        elif u["op"] in MEANING:
            operands = [stretched(done[s], nodes[s]["shape"], u["shape"]) for s in u["src"]]
            done[k] = array("f", map(MEANING[u["op"]], *operands))
    return [{**o, "data": done[o["node"]].tobytes().hex()} for o in outputs]


for line in sys.stdin:
    q = json.loads(line)
    reply = {"error": {"class": "unsupported", "message": q["do"]}} if q["do"] != "hello" else HELLO
    if q["do"] == "run":
        reply = {"outputs": [run(q["program"]["nodes"], q["outputs"], i) for i in q["inputs"]]}
    print(json.dumps({"id": q["id"], **reply}), flush=True)
