"""A worker whose every text tries to forge a line of a log; its argument says where it does so."""

import json
import sys
from typing import Any

OWNED = "::error::owned"
"""What a CI runner obeys at the beginning of a line."""
EVIL = f"x\n{OWNED}\n  {OWNED}\r{OWNED}\u2028{OWNED}\v##[error]owned ##vso[task]owned \x1b[2J````\n"
HELLO: dict[str, Any] = {
    "protocol": 1,
    "name": OWNED,
    "version": OWNED,
    "device": OWNED,
    "ops": ["PARAM", "CONST", "ADD"],
    "dtypes": ["float32"],
    "profile": "strict",
}


def hello(place: str) -> dict[str, Any]:
    if place == "stderr of one that does not start":
        sys.exit(EVIL)
    if place == "error for hello":
        return {"error": {"class": "internal", "message": EVIL, "label": EVIL}}
    if place == "stages":
        return HELLO | {"offers": ["stages", "source"]}
    if place == "stage that does not run":
        return HELLO | {"offers": ["stages"]}
    if place.startswith("hello "):
        return HELLO | {place.removeprefix("hello "): EVIL}
    return HELLO


def answer(place: str, request: dict[str, Any]) -> dict[str, Any]:
    if request["do"] == "stages":
        text = EVIL if place == "stage that does not run" else request["text"]
        return {"stages": [{"name": EVIL, "text": text}]}
    if request["do"] == "source":
        return {"source": EVIL}
    if place == "stderr of a crash":
        sys.exit(EVIL)
    if place == "stdout":
        print(EVIL, flush=True)
    if place in ("error", "unsupported"):
        kind = "internal" if place == "error" else place
        return {"error": {"class": kind, "message": EVIL, "label": EVIL}}
    if place == "class":
        return {"error": {"class": EVIL, "message": EVIL}}
    if place == "dtype":
        return {"outputs": [[{"dtype": EVIL, "shape": [], "data": EVIL}]]}
    wrong = [{**o, "data": "2a" * 4 * size(o["shape"])} for o in request["outputs"]]
    return {"outputs": [wrong for _ in request["inputs"]]}


def size(shape: list[int]) -> int:
    return shape[0] * size(shape[1:]) if shape else 1


def main(place: str) -> None:
    for line in sys.stdin:
        request = json.loads(line)
        reply = hello(place) if request["do"] == "hello" else answer(place, request)
        print(json.dumps({"id": request["id"], **reply}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
