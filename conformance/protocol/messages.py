"""Writes the requests of the worker protocol as JSON lines, and reads the replies."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from uop.conformance.judging.expected import written_buffers
from uop.conformance.judging.storage import to_literal
from uop.conformance.protocol.codec import Json, to_json
from uop.conformance.protocol.hello import CORE, DeviationError, checked
from uop.conformance.protocol.types import (
    Hello,
    Limits,
    Outcome,
    Outputs,
    Problem,
    ProblemKind,
    Program,
)
from uop.interpreter.numeric.storage import STORAGE, Array, is_shape
from uop.spec.dtype import dtypes
from uop.spec.editions import parse as parse_edition
from uop.spec.editions import print_program
from uop.spec.errors import UnsupportedError
from uop.spec.graph import kind_of, slots_of
from uop.spec.ops.names import Op
from uop.spec.text.json_form import to_json as to_json_form
from uop.spec.text.json_form import unbuilt_to_json
from uop.spec.text.literal import Line
from uop.spec.text.program import Scope, parse
from uop.spec.text.program import print_program as print_core
from uop.spec.uop import UOp

PROTOCOL = 1
CLASSES = ("unsupported", "invalid", "trap", "compile", "internal")
"""The classes of the errors that a worker reports."""


@dataclass(frozen=True, slots=True)
class Output:
    """A requested output: a node of the program, or the buffer of a slot that it fills."""

    LEAVES_OUT = ("slot",)
    slot: int | None
    node: int
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Input:
    """An array: its bytes as hex, or the file that holds them."""

    LEAVES_OUT = ("data", "file")
    dtype: str
    shape: tuple[int, ...]
    data: str | None = None
    file: Path | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """A message to a worker; fields that are None are omitted."""

    LEAVES_OUT = ("protocol", "folder", "form", "edition", "text", "program", "outputs", "inputs")
    id: int
    do: str
    protocol: int | None = None
    folder: Path | None = None
    """The folder of the files of large arrays."""
    form: str | None = None
    edition: str | None = None
    text: str | None = None
    program: Json | None = None
    outputs: tuple[Output, ...] | None = None
    inputs: tuple[Mapping[str, Input], ...] | None = None

    @property
    def line(self) -> bytes:
        """The request as JSON in ASCII on one line."""
        return json.dumps(to_json(self), separators=(",", ":")).encode() + b"\n"


def hello_request(folder: Path | None = None) -> Request:
    """The first request: its reply is the hello."""
    return Request(0, "hello", PROTOCOL, folder)


@dataclass(frozen=True, slots=True)
class EditionText:
    """A program written in an edition, and the graph that the text reads as.

    The graph has flat memory where a BUFFER of the edition has a size but no shape.
    """

    edition: str
    text: str
    root: UOp


def in_words(program: Program, hello: Hello) -> EditionText:
    """Write a program in the first edition of a worker that can express it, or UnsupportedError."""
    root, reason = parse(program.text), "the worker reads no edition"
    for edition in hello.editions:
        if edition == CORE:
            return EditionText(edition, print_core(root), root)
        try:
            text = print_program(root, edition)
        except UnsupportedError as error:
            reason = str(error)
        else:
            return EditionText(edition, text, parse_edition(text, edition))
    raise UnsupportedError(reason)


def run_request(id: int, program: Program, hello: Hello, folder: Path | None = None) -> Request:
    """The request to run a program on each of its sets of inputs.

    Arrays of more bytes than the worker takes in a line are written to `folder`. UnsupportedError
    where no edition of the worker can express the program.
    """
    words = in_words(program, hello)
    slots, inline = slots_of(words.root), hello.limits.inline_bytes

    def packed(slot: int, a: Array, number: int) -> Input:
        u = slots[slot]
        path = None if folder is None else folder / f"input-{id}-{number}-{slot}"
        return Input(u.dtype.name, u.shape, *_packed(a, inline, path))

    inputs = tuple(
        {str(slot): packed(slot, a, number) for slot, a in batch.items()}
        for number, batch in enumerate(program.batches)
    )
    outputs = described_outputs(words.root)
    return replace(_request(id, "run", words), outputs=outputs, inputs=inputs)


def ask_request(id: int, do: str, program: Program, hello: Hello) -> Request:
    """The request for the stages, source or properties of a program; the last tells no property."""
    words = in_words(program, hello)
    request = _request(id, do, words)
    if do != "props" or request.program is None:
        return request
    nodes = [
        {name: value for name, value in node.items() if name not in PROPERTIES}
        for node in request.program["nodes"]
    ]
    text = "\n".join(part.partition(" : ")[0] for part in words.text.split("\n"))
    return replace(request, text=text, program={**request.program, "nodes": nodes})


def check_request(id: int, program: Program, hello: Hello) -> Request:
    """The request to check a program, whose last node may break a constraint."""
    if CORE not in hello.editions:
        raise UnsupportedError("programs to be rejected are written in the core")
    *before, last = program.text.strip().split("\n")
    scope = Scope()
    for number, text in enumerate(before, 1):
        scope.read(Line(text, number, ""))
    twin = unbuilt_to_json(scope.read_unbuilt(Line(last, len(before) + 1, "")))
    return Request(id, "check", edition=CORE, text=program.text, program=twin)


def described_outputs(root: UOp) -> tuple[Output, ...]:
    """List the outputs of a program: its value, the members of a TUPLE, or the buffers by slot."""
    number = {u: k for k, u in enumerate(root.toposort())}

    def described(u: UOp, slot: int | None = None) -> Output:
        return Output(slot, number[u], u.dtype.name, u.shape)

    if root.op is Op.TUPLE:
        return tuple(map(described, root.src))
    if root.dtype is not dtypes.void:
        return (described(root),)
    return tuple(described(u, slot) for slot, u in written_buffers(root).items())


def largest_reply(request: Request) -> int:
    """An upper bound of the bytes of a reply to a run request."""
    values = (math.prod(o.shape) * STORAGE[o.dtype].itemsize + 1000 for o in request.outputs or ())
    return (1 << 20) + 4 * sum(values) * len(request.inputs or ())


def read_hello(reply: Json) -> Hello:
    """Read the hello of a worker. DeviationError where a field is wrong."""
    protocol = reply.get("protocol")
    if protocol != PROTOCOL or isinstance(protocol, bool):
        found = f'"{protocol}"' if isinstance(protocol, str) else protocol
        raise DeviationError("hello: protocol", str(PROTOCOL), found)
    limits, supports, composed = (_object(reply, n) for n in ("limits", "supports", "composed"))
    hello = Hello(
        _text(reply, "name"),
        _text(reply, "version"),
        _text(reply, "device", "worker"),
        frozenset(_names(reply, "ops")),
        frozenset(_names(reply, "dtypes")),
        Limits(
            16,
            limits.get("elements"),
            limits.get("devices", 1),
            limits.get("inline_bytes"),
        ),
        frozenset(_names(reply, "forms", ["tensor"])),
        frozenset(_names(reply, "offers", [])),
        tuple(_names(reply, "editions", [CORE])),
        _text(reply, "profile", ""),
        _text(reply, "variant", ""),
        {op: frozenset(_names(supports, op)) for op in supports},
        {op: tuple(_names(composed, op)) for op in composed},
    )
    return checked(hello)


def read_outputs(reply: Json, batches: int, folder: Path | None = None) -> Outcome:
    """Read the reply to a run request: outputs for each set of inputs, or an error."""
    if "error" in reply:
        return read_error(reply)
    results = reply.get("outputs")
    if "outputs" in reply and not isinstance(results, list):
        raise DeviationError("outputs", "a list for each set of inputs", results)
    if not isinstance(results, list):
        raise DeviationError("reply", "outputs or an error", sorted(reply))
    if len(results) != batches:
        found = f"{len(results)}"
        raise DeviationError("outputs", f"a list for each of {batches} sets of inputs", found)
    for number, arrays in enumerate(results):
        if not isinstance(arrays, list):
            raise DeviationError(f"outputs[{number}]", "a list of arrays", arrays)
    return Outputs(
        tuple(
            tuple(read_array(a, f"outputs[{number}][{k}]", folder) for k, a in enumerate(arrays))
            for number, arrays in enumerate(results)
        )
    )


def in_its_shapes(outcome: Outcome, request: Request, program: Program) -> Outcome:
    """Reshape outputs from the shapes of the request to those of the program.

    They differ where the edition of the worker has flat memory.
    """
    if isinstance(outcome, Problem):
        return outcome
    sent, wanted = (
        [output.shape for output in outputs]
        for outputs in (request.outputs or (), described_outputs(parse(program.text)))
    )

    def shaped(k: int, a: Array) -> Array:
        return a.reshape(wanted[k]) if k < len(sent) and a.shape == sent[k] else a

    return Outputs(tuple(tuple(shaped(k, a) for k, a in enumerate(b)) for b in outcome.batches))


def read_error(reply: Json) -> Problem:
    """Read the error that a worker reports instead of outputs."""
    error = _object(reply, "error")
    kind, message, label = (error.get(name, "") for name in ("class", "message", "label"))
    if kind not in CLASSES:
        raise DeviationError("error: class", f"one of {', '.join(CLASSES)}", kind)
    if not isinstance(message, str) or not isinstance(label, str):
        raise DeviationError("error", "message and label as strings", error)
    return Problem(ProblemKind(kind), message, label)


def read_array(entry: object, place: str, folder: Path | None) -> Array:
    """Read an array of a reply; its bytes are in hex or in a file of the folder."""
    if not isinstance(entry, Mapping):
        raise DeviationError(place, "an object with dtype, shape and data", entry)
    name, shape = entry.get("dtype"), entry.get("shape")
    if not isinstance(name, str) or name not in STORAGE:
        raise DeviationError(f"{place}: dtype", f"one of {', '.join(STORAGE)}", name)
    storage = STORAGE[name]
    if not is_shape(shape, storage.itemsize):
        raise DeviationError(f"{place}: shape", "a list of sizes that an array has", shape)
    size = math.prod(shape) * storage.itemsize
    data = _bytes(entry, place, folder, size)
    if len(data) != size:
        found = f"{len(data)} bytes"
        raise DeviationError(f"{place}: data", f"{size} bytes for {name}{shape}", found)
    if storage == np.bool_ and (strange := set(data) - {0, 1}):
        raise DeviationError(f"{place}: data", "bytes 0 and 1 for bool", f"{min(strange)}")
    return np.frombuffer(data, storage).reshape(shape)


PROPERTIES = ("dtype", "shape", "device", "addrspace")
"""The derived properties that the nodes of a program carry."""


def _request(id: int, do: str, words: EditionText) -> Request:
    form, twin = kind_of(words.root), to_json_form(words.root)
    return Request(id, do, form=form, edition=words.edition, text=words.text, program=twin)


def _packed(
    a: Array, inline: int | None, path: Path | None
) -> tuple[str, None] | tuple[None, Path]:
    """The bytes of an array as hex, or the path of a file with them."""
    data = to_literal(a).data
    if inline is None or path is None or len(data) <= inline:
        return data.hex(), None
    path.write_bytes(data)
    return None, path


def _bytes(entry: Mapping[str, Any], place: str, folder: Path | None, size: int) -> bytes:
    if "file" not in entry:
        text = entry.get("data")
        try:
            return bytes.fromhex(text)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise DeviationError(f"{place}: data", "bytes in hex", text) from None
    path = _file_in(folder, entry["file"])
    if path is None:
        raise DeviationError(f"{place}: file", f"a file in {folder}", entry["file"])
    if path.stat().st_size != size:
        raise DeviationError(f"{place}: file", f"{size} bytes", f"{path.stat().st_size} bytes")
    try:
        data = path.read_bytes()
        path.unlink()
    except OSError as error:
        raise DeviationError(f"{place}: file", "a file to read", str(error.strerror)) from None
    return data


def _file_in(folder: Path | None, name: object) -> Path | None:
    """The path of this file; None unless it exists and lies in the folder."""
    if folder is None or not isinstance(name, str):
        return None
    try:
        path = Path(name).resolve()
        return path if folder.resolve() in path.parents and path.is_file() else None
    except (ValueError, OSError):
        return None


def _object(reply: Json, name: str) -> Json:
    value = reply.get(name, {})
    if not isinstance(value, dict):
        raise DeviationError(name, "an object", value)
    return value


def _text(reply: Json, name: str, default: str | None = None) -> str:
    value = reply.get(name, default)
    if not isinstance(value, str):
        raise DeviationError(f"hello: {name}", "a string", value)
    return value


def _names(reply: Json, name: str, default: object = None) -> list[str]:
    value = reply.get(name, default)
    if not isinstance(value, list) or not all(isinstance(n, str) for n in value):
        raise DeviationError(f"hello: {name}", "a list of names", value)
    return value
