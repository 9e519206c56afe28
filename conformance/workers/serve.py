"""Runs a backend in a process: `python -m uop.conformance.workers.serve NAME`."""

from __future__ import annotations

import math
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain, cycle
from pathlib import Path
from typing import cast

import numpy as np

from uop.conformance.backends import load
from uop.conformance.protocol import types, wire
from uop.conformance.protocol.hello import checked
from uop.conformance.workers.processes import end, own_stdout, when_alone
from uop.interpreter.footprint import SMALL, at_most
from uop.interpreter.numeric.storage import STORED, Array
from uop.spec.distribution import load_additions
from uop.spec.errors import UopError

STATM = Path("/proc/self/statm")
SHARED = 100
LONGEST = (1 << 31) - 1
"""The most seconds of an alarm: those that an int in C holds."""
BORDER = 64
"""The bytes on each side of an input."""
BORDERS = (0xA5, 0x3C)
"""What they hold, call by call: no result depends on it."""


def main(name: str) -> None:
    """Send the hello, then run programs until the parent closes the pipe."""
    with suppress(wire.ClosedError), at_most(SMALL):
        _serve(name)


def _serve(name: str) -> None:
    # What a backend or its driver prints must not land between the messages.
    out = own_stdout()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    when_alone(partial(end, os.getpid()))
    # For a backend named module:Class; last, so that it hides no installed module.
    sys.path.append(str(Path.cwd()))
    try:
        load_additions()
        backend = load(name)
        hello = checked(backend.hello())
    except UopError as error:
        wire.write(out, wire.refusal(error))
        return
    wire.write(out, wire.Started(hello, resident()))
    answer(backend, 0, out)


def answer(backend: types.Backend, requests: int, replies: int) -> None:
    """Run the programs of each message. ClosedError when the other side has gone."""
    borders = cycle(BORDERS)
    while True:
        kinds = (wire.Run, wire.Lower, wire.Locate)
        message = cast(wire.Run | wire.Lower | wire.Locate, wire.read(requests, *kinds))
        # The alarm ends an orphan even where it hangs with the GIL held. The parent is sooner, also
        # where the processor is shared by many.
        signal.alarm(min(math.ceil(message.limit) * SHARED, LONGEST))
        reply: wire.Ran | wire.Lowered | wire.Located
        if isinstance(message, wire.Lower):
            stages = cast(types.StagedBackend, backend).stages(message.program)
            reply = wire.Lowered(tuple(stages), isinstance(backend, types.LocatingBackend))
        elif isinstance(message, wire.Locate):
            reply = wire.Located(cast(types.LocatingBackend, backend).locate(message.program))
        else:
            outcomes = run(backend, message.programs, next(borders))
            reply = wire.Ran(outcomes, resident(), fired(backend))
        signal.alarm(0)
        wire.write(replies, reply)


def run(
    backend: types.Backend, programs: Sequence[types.Program], border: int
) -> tuple[types.Outcome, ...]:
    """Run programs on inputs that stand between bytes of a value.

    A program whose inputs, or the bytes around them, have changed has a problem instead of outputs.
    """
    lent = [[_Lent(batch, border) for batch in program.batches] for program in programs]
    given = [
        replace(program, batches=tuple(one.inputs for one in own))
        for program, own in zip(programs, lent, strict=True)
    ]
    outcomes = list(map(fitting, backend.run(given)))
    for number, own in enumerate(lent[: len(outcomes)]):
        problems = filter(None, (one.problem for one in own))
        outcomes[number] = next(problems, outcomes[number])
    return tuple(outcomes)


class _Lent:
    """Inputs that a backend may read, between bytes of one value."""

    def __init__(self, batch: Mapping[int, Array], border: int) -> None:
        self.before = {slot: _bordered(a, border) for slot, a in batch.items()}
        self.after = {slot: held.copy() for slot, held in self.before.items()}
        self.inputs = {
            slot: held[BORDER : BORDER + batch[slot].nbytes]
            .view(batch[slot].dtype)
            .reshape(batch[slot].shape)
            for slot, held in self.after.items()
        }

    @property
    def problem(self) -> types.Problem | None:
        """That the backend changed an input, or memory around it."""
        for slot, held in self.after.items():
            if not np.array_equal(held, self.before[slot]):
                message = f"run: input {slot} or memory beside it was changed; expected it to stay"
                return types.Problem(types.ProblemKind.PROTOCOL, message)
        return None


def _bordered(a: Array, border: int) -> Array:
    held = np.full(a.nbytes + 2 * BORDER, border, np.uint8)
    held[BORDER : BORDER + a.nbytes] = np.ascontiguousarray(a).reshape(-1).view(np.uint8)
    return held


def fitting(outcome: object) -> types.Outcome:
    """The outcome of a program; a PROTOCOL problem for anything that is no outcome."""
    if isinstance(outcome, types.Problem):
        return outcome
    if not isinstance(outcome, types.Outputs):
        message = f"run: expected Outputs or a Problem, found {type(outcome).__name__}"
        return types.Problem(types.ProblemKind.PROTOCOL, message)
    for a in chain.from_iterable(outcome.batches):
        if not isinstance(a, np.ndarray | np.generic):
            message = f"an output: expected a numpy array, found {type(a).__name__}"
            return types.Problem(types.ProblemKind.PROTOCOL, message)
        if a.dtype not in STORED:
            known = ", ".join(dtype.name for dtype in STORED.values())
            message = f"an output: expected an array of {known}, found {a.dtype}"
            return types.Problem(types.ProblemKind.PROTOCOL, message)
    return outcome


def fired(backend: types.Backend) -> Mapping[str, int]:
    """The counts of a backend that counts rules; else none."""
    return backend.fired() if isinstance(backend, types.CountingBackend) else {}


def resident() -> int:
    """The resident memory of this process in bytes; 0 without /proc."""
    if not STATM.exists():
        return 0
    return int(STATM.read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main(sys.argv[1])
