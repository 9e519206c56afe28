"""A worker for float32 with the fault that its argument names; on its standard library alone.

It adds as it should, and does what the fault is about only where a program holds MUL, or, for
faults of the start, at once.
"""

import itertools
import json
import operator
import os
import signal
import sys
import time
from array import array
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
HELLO: Json = {
    "protocol": 1,
    "name": "faulty",
    "version": "1",
    "ops": ["PARAM", "ADD", "MUL"],
    "dtypes": ["float32"],
}
LIES: dict[str, Json] = {
    "unknown-op": {"ops": ["PARAM", "FROBNICATE"]},
    "unknown-dtype": {"dtypes": ["float33"]},
    "unknown-edition": {"editions": ["1999-01"]},
    "knows-too-little": {"ops": ["MUL"]},
    "unknown-form": {"forms": ["spiral"]},
    "unknown-offer": {"offers": ["coffee"]},
    "unknown-knob": {"profile": "whatever"},
    "other-protocol": {"protocol": 2},
    "protocol-as-text": {"protocol": "1"},
    "protocol-as-truth": {"protocol": True},
    "ops-no-list": {"ops": "ADD"},
    "no-name": {"name": None},
    "empty-name": {"name": ""},
    "empty-device": {"device": ""},
    "red-name": {"name": "\x1b[31mred"},
    "long-name": {"name": "x" * 10_000},
    "no-forms": {"forms": []},
    "no-editions": {"editions": []},
    "negative-limit": {"limits": {"elements": -1}},
}
REPLIES: dict[str, Json] = {
    "wrong-shape": {"outputs": [[{"dtype": "float32", "shape": [2], "data": "00" * 8}]]},
    "wrong-dtype": {"outputs": [[{"dtype": "int32", "shape": [3], "data": "00" * 12}]]},
    "unknown-result": {"outputs": [[{"dtype": "float33", "shape": [3], "data": "00" * 12}]]},
    "negative-shape": {"outputs": [[{"dtype": "float32", "shape": [-3], "data": ""}]]},
    "many-axes": {"outputs": [[{"dtype": "float32", "shape": [1] * 100, "data": "00" * 4}]]},
    "empty-and-large": {"outputs": [[{"dtype": "float32", "shape": [0, 10**30], "data": ""}]]},
    "long-sizes": {"outputs": [[{"dtype": "float32", "shape": [10**4000] * 2, "data": "00"}]]},
    "too-many-bytes": {"outputs": [[{"dtype": "float32", "shape": [3], "data": "00" * 16}]]},
    "odd-hex": {"outputs": [[{"dtype": "float32", "shape": [3], "data": "0"}]]},
    "number-as-data": {"outputs": [[{"dtype": "float32", "shape": [3], "data": 7}]]},
    "bad-bool": {"outputs": [[{"dtype": "bool", "shape": [3], "data": "000701"}]]},
    "no-outputs": {"results": []},
    "flat-outputs": {"outputs": [7]},
    "number-outputs": {"outputs": [[7]]},
    "two-sets": {"outputs": [[], []]},
    "two-outputs": {"outputs": [[{"dtype": "float32", "shape": [0], "data": ""}] * 2]},
    "stray-file": {"outputs": [[{"dtype": "float32", "shape": [3], "file": "/etc/hostname"}]]},
    "unsupported": {"error": {"class": "unsupported", "message": "no MUL here"}},
    "trap": {"error": {"class": "trap", "message": "trapped"}},
    "compile": {"error": {"class": "compile", "message": "does not build"}},
    "unknown-class": {"error": {"class": "tired", "message": "later"}},
    "error-no-object": {"error": "later"},
    "list-as-dtype": {"outputs": [[{"dtype": ["float32"], "shape": [3], "data": "00" * 12}]]},
    "object-as-outputs": {"outputs": {"0": []}},
    "file-without-name": {"outputs": [[{"dtype": "float32", "shape": [3], "file": 7}]]},
    "file-with-nul": {"outputs": [[{"dtype": "float32", "shape": [3], "file": "a\0b"}]]},
    "file-of-long-name": {"outputs": [[{"dtype": "float32", "shape": [3], "file": "a" * 9999}]]},
    "escapes": {"error": {"class": "internal", "message": "\x1b[2J \ud800 \0"}},
    "complains": {"error": {"class": "compile", "message": "does not build"}},
}
kept: list[bytes] = []
MEANING = {"ADD": operator.add, "MUL": operator.mul}


def main(fault: str) -> None:
    if fault == "exit-at-start":
        sys.exit("no device")
    for line in sys.stdin:
        request = json.loads(line)
        reply: Json = {"id": request["id"], **(HELLO | LIES.get(fault, {}))}
        if request["do"] not in ("hello", "run"):
            error = {"class": "unsupported", "message": request["do"]}
            reply = {"id": request["id"], "error": error}
            if fault == "later":
                reply = {"id": request["id"], "outputs": []}
        if request["do"] == "run":
            reply = answer(fault, request)
            if '"MUL"' in line:
                misbehave(fault, reply)
        if fault == "unflushed":
            sys.stdout.write(json.dumps(reply) + "\n")
        elif fault != "mute":
            print(json.dumps(reply), flush=True)

    if fault == "farewell":
        print("bye")
    if fault == "stays":
        sleep("")
    if fault == "ends-badly":
        sys.exit(3)


def answer(fault: str, request: Json) -> Json:
    given = request["inputs"]
    outputs: Json = {"outputs": [result(request, i) for i in given]}
    is_twice = len(given) > 1 and given[0] == given[1]
    if fault == "hangs-on-equal" and is_twice:
        sleep("")
    if fault == "changing" and is_twice:
        outputs["outputs"][1][0]["data"] = "00" * (len(outputs["outputs"][1][0]["data"]) // 2)
    is_culprit = "MUL" in (node["op"] for node in request["program"]["nodes"])
    if fault == "zeros" and is_culprit:
        for array_ in itertools.chain.from_iterable(outputs["outputs"]):
            array_["data"] = "00" * (len(array_["data"]) // 2)
    if is_culprit:
        outputs = REPLIES.get(fault, outputs)
    shapes = [n["shape"] for n in request["program"]["nodes"] if n["op"] == "PARAM"]
    if fault == "one-shape" and not is_culprit and shapes[0] != shapes[-1]:
        outputs = {"error": {"class": "internal", "message": "shapes differ"}}
    reply = {"id": request["id"], **outputs}
    if fault == "text-as-id" and is_culprit:
        reply["id"] = str(reply["id"])
    if fault == "without-id" and is_culprit:
        del reply["id"]
    return reply


def result(request: Json, inputs: Json) -> list[Json]:
    nodes = request["program"]["nodes"]
    done: dict[int, array[float]] = {}
    for k, u in enumerate(nodes):
        if u["op"] == "PARAM":
            done[k] = array("f", bytes.fromhex(inputs[str(u["arg"]["slot"])]["data"]))
        elif u["op"] in MEANING:
            operands = (stretched(done[s], nodes[s]["shape"], u["shape"]) for s in u["src"])
            done[k] = array("f", map(MEANING[u["op"]], *operands))
    return [{**o, "data": done[o["node"]].tobytes().hex()} for o in request["outputs"]]


def stretched(values: "array[float]", shape: list[int], to: list[int]) -> list[float]:
    """The values of an operand in the shape of the result: an axis of size 1 repeats."""
    aligned = [1] * (len(to) - len(shape)) + shape
    found = []
    for place in itertools.product(*map(range, to)):
        at = 0
        for n, k in zip(aligned, place, strict=True):
            at = at * n + (k if n > 1 else 0)
        found.append(values[at])
    return found


def misbehave(fault: str, reply: Json) -> None:
    text = json.dumps(reply)
    if fault in FAULTS:
        FAULTS[fault](text)


def sleep(text: str) -> None:
    time.sleep(3600)


def print_garbage(text: str) -> None:
    for line in ("loading...", "[1, 2]", '{"id": 12345}', "\x00\xff", "[" * 5000):
        print(line)


def print_twice(text: str) -> None:
    print(text)


def print_half(text: str) -> None:
    print(text[: len(text) // 2], end="", flush=True)
    sleep(text)


def print_half_and_exit(text: str) -> None:
    print(text[: len(text) // 2], end="", flush=True)
    os._exit(0)


def print_without_newline(text: str) -> None:
    print(text, end="", flush=True)
    sleep(text)


def print_without_end(text: str) -> None:
    while True:
        os.write(1, b"x" * 65536)


def hang_loudly(text: str) -> None:
    while True:
        os.write(2, b"still busy\n")


def speak_loudly(text: str) -> None:
    for _ in range(1000):
        os.write(2, b"chatter " * 128)


def crash(text: str) -> None:
    print("about to crash", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)


def leave(text: str) -> None:
    os._exit(7)


def leave_a_child(text: str) -> None:
    if os.fork():
        os._exit(5)
    sleep(text)


def hang_with_children(text: str) -> None:
    for _ in range(3):
        if not os.fork():
            os.setsid()
            sleep(text)
    sleep(text)


def complain(text: str) -> None:
    print("line 3: expected ';'", file=sys.stderr, flush=True)


def print_blank_lines(text: str) -> None:
    while True:
        os.write(1, b"\n" * 65536)


def come_late(text: str) -> None:
    time.sleep(1.2)


def leave_a_daemon(text: str, *, keeps_environment: bool = True, ends: bool = True) -> None:
    """A grandchild in a session of its own, whose parent is gone."""
    pid, told = os.getpid(), os.pipe()
    if not (child := os.fork()):
        os.setsid()
        if daemon := os.fork():
            os.write(told[1], str(daemon).encode())
            os._exit(0)
        if not keeps_environment:
            os.execve("/bin/sleep", ["sleep", "3600"], {})
        sleep(text)
    os.waitpid(child, 0)
    print("daemon", os.read(told[0], 20).decode(), file=sys.stderr, flush=True)
    if ends:
        os.kill(pid, signal.SIGKILL)


def leave_everything(text: str) -> None:
    """The same, without the environment too."""
    leave_a_daemon(text, keeps_environment=False)


def leave_a_daemon_beside(text: str) -> None:
    """Such a process while the worker goes on."""
    leave_a_daemon(text, keeps_environment=False, ends=False)


def print_line(line: bytes) -> Callable[[str], None]:
    """A fault that prints a line and waits."""

    def fault(text: str) -> None:
        os.write(1, line + b"\n")
        sleep(text)

    return fault


def print_newlines(text: str) -> None:
    """Fewer bytes than a reply may have."""
    for _ in range(3):
        os.write(1, b"\n" * 5000)
    sleep(text)


def close_stdout(text: str) -> None:
    os.close(1)
    sleep(text)


def grow(text: str) -> None:
    while True:
        kept.append(b"\x01" * (16 << 20))
        time.sleep(0.02)


def grow_in_a_child(text: str) -> None:
    if not os.fork():
        grow(text)
    sleep(text)


FAULTS = {
    "silent": sleep,
    "garbage": print_garbage,
    "twice": print_twice,
    "half": print_half,
    "half-and-exit": print_half_and_exit,
    "no-newline": print_without_newline,
    "endless": print_without_end,
    "loud-hang": hang_loudly,
    "loud": speak_loudly,
    "crash": crash,
    "exit": leave,
    "child": leave_a_child,
    "children": hang_with_children,
    "complains": complain,
    "blank-lines": print_blank_lines,
    "late": come_late,
    "daemon": leave_a_daemon,
    "daemon-of-no-environment": leave_everything,
    "daemon-beside": leave_a_daemon_beside,
    "no-utf-8": print_line(b'{"id": 2, "outputs": "\xff"}'),
    "bom": print_line(b'\xef\xbb\xbf{"id": 2, "outputs": []}'),
    "utf-16": print_line('{"id": 2, "outputs": []}'.encode("utf-16")),
    "deep-reply": print_line(b'{"id": 2, "outputs": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "long-integer": print_line(b'{"id": 2, "outputs": ' + b"9" * 5000 + b"}"),
    "cut-reply": print_line(b'{"id": 2, "outputs": [['),
    "newlines": print_newlines,
    "closed-stdout": close_stdout,
    "leak": grow,
    "leak-in-child": grow_in_a_child,
}


if __name__ == "__main__":
    main(sys.argv[1])
