"""BINARYs: machine code, its source, and the machine that it is for."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from uop.spec.args import BinaryArg, SourceArg, arg_of
from uop.spec.conditions.labels import CONDITIONS
from uop.spec.errors import LackingError, UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

MAGIC = b"uop binary 1\n"
ABOUT = ("target", "machine", "kernel", "source")


@dataclass(frozen=True, slots=True)
class Binary:
    """Machine code of one kernel, for a target and a machine."""

    target: str
    machine: str
    """The device and the driver, or the architecture, that run it."""
    kernel: str
    """The name of the kernel in it."""
    source: str
    """The SHA-256 of its source."""
    code: bytes

    def pack(self) -> bytes:
        """A line that names the format, a line of JSON, then the code."""
        about = {key: getattr(self, key) for key in ABOUT} | {"code": digest(self.code)}
        return MAGIC + json.dumps(about).encode() + b"\n" + self.code


def unpack(data: bytes, source: str) -> Binary:
    """The inverse of `pack`, for a PROGRAM of this source.

    LackingError for other bytes, for damaged ones, and for code of another source.
    """
    head, _, code = data.removeprefix(MAGIC).partition(b"\n")
    if not data.startswith(MAGIC):
        raise _broken(f"{len(data)} bytes that start with {data[: len(MAGIC)]!r}")
    try:
        about = json.loads(head)
        target, machine, kernel, of = (str(about[key]) for key in ABOUT)
        expected = about["code"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise _broken("a head that is cut off or damaged") from None
    if digest(code) != expected:
        raise _broken(f"{len(code)} bytes of code that are cut off or damaged")
    if digest(source.encode()) != of:
        raise _broken("code of another SOURCE")
    return Binary(target, machine, kernel, of, code)


def binaries_of(bodies: Iterable[UOp], target: str) -> dict[UOp, Binary]:
    """The machine code of the PROGRAMs among the kernels of a program, by the LINEAR of each.

    LackingError for code that is damaged or of another SOURCE, UnsupportedError for code of another
    target.
    """
    found: dict[UOp, Binary] = {}
    for body in bodies:
        if body.op is Op.PROGRAM and body.src[2].shape != (0,):
            linear, source, code = body.src
            binary = unpack(arg_of(code, BinaryArg).data, arg_of(source, SourceArg).text)
            if binary.target != target:
                raise UnsupportedError(f"a BINARY for {binary.target}, not for {target}")
            found[linear] = binary
    return found


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def _broken(found: str) -> LackingError:
    return CONDITIONS["PROGRAM.binary"].lacking("BINARY", found)
