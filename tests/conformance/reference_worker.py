"""The interpreter as an executable that answers JSON lines, with everything that one may offer.

Its argument is JSON: `hello` is added to what it says of itself, `fault` names something to get
wrong.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from uop.conformance.backends.interpreter import EVERY_OP, evaluate_whole, in_order, is_sharded
from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import STORAGE, STORED, Array
from uop.spec import editions
from uop.spec.errors import InvalidError, MalformedError, UopError
from uop.spec.ops.names import Op
from uop.spec.text.json_form import from_json, to_json
from uop.spec.text.program import parse, print_program
from uop.spec.uop import UOp

Json = dict[str, Any]
HELLO: Json = {
    "protocol": 1,
    "name": "reference",
    "version": "1",
    "ops": sorted(EVERY_OP),
    "dtypes": list(STORAGE),
    "limits": {"devices": 8},
}


class Worker:
    def __init__(self, hello: Json, fault: str) -> None:
        self.said, self.fault, self.folder = HELLO | hello, fault, Path()
        self.files = 0

    def hello(self, request: Json) -> Json:
        self.folder = Path(request.get("folder", "."))
        return self.said

    def run(self, request: Json) -> Json:
        root = program(request)
        if self.fault == "ADD is MUL":
            root = with_mul(root)
        meaning = evaluate_whole if is_sharded(root) else evaluate
        outputs = []
        for given in request["inputs"]:
            inputs = {int(slot): unpacked(a) for slot, a in given.items()}
            outputs.append([self.packed(a) for a in in_order(meaning(root, inputs))])
        return {"outputs": outputs}

    def check(self, request: Json) -> Json:
        if self.fault != "all is valid":
            from_json(request["program"])
        return {"valid": True}

    def props(self, request: Json) -> Json:
        assert all("shape" not in node for node in request["program"]["nodes"])
        root = from_json(request["program"])
        nodes = to_json(root)["nodes"]
        for u, node in zip(root.toposort(), nodes, strict=True):
            if u.min_max is not None and not u.dtype.is_float:
                node["min_max"] = [str(int(u.min_max.min)), str(int(u.min_max.max))]
        if self.fault == "shape of the root":
            nodes[-1]["shape"] = [7]
        return {"props": nodes}

    def stages(self, request: Json) -> Json:
        root = program(request)
        fused = with_mul(root) if self.fault == "ADD is MUL" else root
        left = {"parse": print_program(root), "fuse": print_program(fused)}
        return {"stages": [{"name": name, "text": text} for name, text in left.items()]}

    def source(self, request: Json) -> Json:
        return {"source": "int main(void) {\n  return 0;\n}\n"}

    def packed(self, a: Array) -> Json:
        described: Json = {"dtype": STORED[a.dtype].name, "shape": list(a.shape)}
        if "inline_bytes" not in self.said["limits"]:
            return {**described, "data": a.tobytes().hex()}
        self.files += 1
        path = self.folder / f"output-{self.files}"
        path.write_bytes(a.tobytes())
        return {**described, "file": str(path)}


def program(request: Json) -> UOp:
    """The program of a request, which says the same twice."""
    edition, text = request["edition"], request["text"]
    root = parse(text) if edition == "core" else editions.parse(text, edition)
    assert edition != "core" or from_json(request["program"]) is root
    return root


def with_mul(root: UOp) -> UOp:
    return root.substitute(
        {u: UOp(Op.MUL, *u.src) for u in root.toposort() if u.op is Op.ADD and u.dtype.is_float}
    )


def unpacked(given: Json) -> Array:
    data = Path(given["file"]).read_bytes() if "file" in given else bytes.fromhex(given["data"])
    return np.frombuffer(data, STORAGE[given["dtype"]]).reshape(given["shape"])


def answer(worker: Worker, request: Json) -> Json:
    known: dict[str, Callable[[Json], Json]] = {
        name: getattr(worker, name)
        for name in ("hello", "run", "check", "props", "stages", "source")
    }
    if request["do"] not in known:
        return {"error": {"class": "unsupported", "message": f"no {request['do']}"}}
    try:
        return known[request["do"]](request)
    except InvalidError as error:
        return {"error": {"class": "invalid", "message": str(error), "label": error.label}}
    except MalformedError as error:
        return {"error": {"class": "invalid", "message": str(error)}}
    except UopError as error:
        return {"error": {"class": "internal", "message": str(error)}}


def main() -> None:
    chosen = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    worker = Worker(chosen.get("hello", {}), chosen.get("fault", ""))
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps({"id": request["id"], **answer(worker, request)}), flush=True)


if __name__ == "__main__":
    main()
