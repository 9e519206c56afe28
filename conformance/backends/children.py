"""Work in a child of this process: what it has told before it ended is kept, however it ended."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from uop.conformance import wire


@dataclass(frozen=True, slots=True)
class Ended:
    """What a child has told, frame by frame, and how it ended: nothing where it was done."""

    told: tuple[tuple[wire.Json, bytes], ...]
    how: str = ""


def in_child(work: Callable[[], Iterable[bytes]]) -> Ended:
    """Run `work` in a fork of this process; each frame is sent as soon as it is there."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _work(work, writing)
    os.close(writing)
    told = []
    try:
        while True:
            told.append(wire.read(reading))
    except wire.ClosedError:
        pass
    finally:
        os.close(reading)
        _, status = os.waitpid(child, 0)
    return Ended(tuple(told), how_ended(os.waitstatus_to_exitcode(status)))


def how_ended(code: int) -> str:
    """In words how a process ended; nothing for the exit code 0."""
    if code < 0:
        return f"the process was ended by {signal.Signals(-code).name}"
    return f"the process ended with exit code {code}" if code else ""


def _work(work: Callable[[], Iterable[bytes]], writing: int) -> None:
    """Never returns: the child must not go on as its parent would."""
    code = 1
    try:
        for frame in work():
            wire.write(writing, frame)
        code = 0
    except BaseException:  # noqa: BLE001 - whatever it is, the parent hears that the child ended
        traceback.print_exc()
    finally:
        os._exit(code)
