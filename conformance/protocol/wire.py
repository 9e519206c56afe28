"""The frames between processes: a JSON header, then the bytes of its arrays; nothing is pickled."""

from __future__ import annotations

import json
import math
import os
import select
import struct
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from uop.conformance.protocol.types import (
    Hello,
    Limits,
    Outcome,
    Outputs,
    Problem,
    ProblemKind,
    Program,
)
from uop.interpreter.numeric.storage import STORAGE, Array

Json = dict[str, Any]
SIZES = struct.Struct("<QQ")
SETS = ("ops", "dtypes", "forms", "offers")
NAMES = {storage: name for name, storage in STORAGE.items() if name != "index"}


class ClosedError(Exception):
    """The other side has gone, or sent what is no frame."""


class LateError(Exception):
    """The other side has not answered in time."""


class Packer:
    """Collects the arrays of a frame; each stands in the header as its dtype and shape."""

    def __init__(self) -> None:
        self.parts: list[Array] = []

    def pack(self, a: Array) -> list[Any]:
        self.parts.append(np.ascontiguousarray(a))
        return [NAMES[a.dtype], list(a.shape)]

    def frame(self, header: Json) -> bytes:
        """The bytes of one frame."""
        text = json.dumps(header).encode()
        body = b"".join(part.tobytes() for part in self.parts)
        return SIZES.pack(len(text), len(body)) + text + body


class Unpacker:
    """Takes the arrays out of a body in the order in which they were packed."""

    def __init__(self, body: bytes) -> None:
        self.body, self.position = body, 0

    def unpack(self, described: list[Any]) -> Array:
        name, shape = described
        storage = STORAGE[name]
        count = math.prod(shape)
        a = np.frombuffer(self.body, storage, count, self.position).reshape(shape)
        self.position += count * storage.itemsize
        return a


def write(fd: int, frame: bytes) -> None:
    """Write a whole frame; ClosedError where nobody reads."""
    view = memoryview(frame)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except BrokenPipeError as error:
        raise ClosedError from error


def read(fd: int, deadline: float | None = None) -> tuple[Json, bytes]:
    """Read one frame; LateError where it is not complete at `deadline` (by time.monotonic)."""
    header_size, body_size = SIZES.unpack(_read_exactly(fd, SIZES.size, deadline))
    try:
        header: Json = json.loads(_read_exactly(fd, header_size, deadline))
    except (ValueError, MemoryError, OverflowError) as error:
        raise ClosedError from error
    return header, _read_exactly(fd, body_size, deadline)


def _read_exactly(fd: int, size: int, deadline: float | None) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        if deadline is not None:
            ready, _, _ = select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise LateError
        part = os.read(fd, min(size - len(parts), 1 << 20))
        if not part:
            raise ClosedError
        parts += part
    return bytes(parts)


def pack_programs(programs: tuple[Program, ...], limit: float) -> bytes:
    packer = Packer()
    described = [
        {
            "text": program.text,
            "batches": [
                [[slot, packer.pack(a)] for slot, a in batch.items()] for batch in program.batches
            ],
        }
        for program in programs
    ]
    return packer.frame({"programs": described, "limit": limit})


def unpack_programs(header: Json, body: bytes) -> list[Program]:
    unpacker = Unpacker(body)
    return [
        Program(
            described["text"],
            tuple({slot: unpacker.unpack(a) for slot, a in b} for b in described["batches"]),
        )
        for described in header["programs"]
    ]


def pack_outcomes(outcomes: Iterator[Outcome] | list[Outcome], resident: int) -> bytes:
    packer = Packer()
    described = [_describe(packer, outcome) for outcome in outcomes]
    return packer.frame({"outcomes": described, "resident": resident})


def _describe(packer: Packer, outcome: Outcome) -> Json:
    if isinstance(outcome, Outputs):
        return {"outputs": [[packer.pack(a) for a in batch] for batch in outcome.batches]}
    return {"kind": outcome.kind.value, "message": outcome.message, "label": outcome.label}


def unpack_outcomes(header: Json, body: bytes) -> list[Outcome]:
    unpacker = Unpacker(body)
    outcomes: list[Outcome] = []
    for described in header["outcomes"]:
        if "outputs" in described:
            batches = described["outputs"]
            outcomes.append(Outputs(tuple(tuple(map(unpacker.unpack, b)) for b in batches)))
        else:
            kind = ProblemKind(described["kind"])
            outcomes.append(Problem(kind, described["message"], described["label"]))
    return outcomes


def hello_to_json(hello: Hello) -> Json:
    sets = {name: sorted(getattr(hello, name)) for name in SETS}
    return {**asdict(hello), **sets}


def hello_from_json(header: Json) -> Hello:
    changed = {name: frozenset(header[name]) for name in SETS}
    editions, limits = tuple(header["editions"]), Limits(**header["limits"])
    return Hello(**{**header, **changed, "editions": editions, "limits": limits})
