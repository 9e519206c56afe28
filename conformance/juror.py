"""A process that judges: makes the cases it is told by id, and has a worker of its own."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from types import FrameType

from uop.conformance import wire
from uop.conformance.generate import case_by_id
from uop.conformance.judge import Judge, fault_from_json
from uop.conformance.repro import find_cause
from uop.conformance.sessions import start
from uop.spec.errors import BackendError, UopError
from uop.spec.latitude import parse_profile


def main(backend: str, profile: str, seed: int) -> None:
    """Say who is judged, then answer tasks until the other side closes."""
    out = os.dup(1)
    os.dup2(2, 1)
    signal.signal(signal.SIGTERM, _leave)
    with tempfile.TemporaryDirectory(prefix="uop-", ignore_cleanup_errors=True) as folder:
        try:
            worker = start(backend, Path(folder))
        except UopError as error:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            _reply(out, {"lost": str(error)})
            return
        try:
            _reply(out, {"hello": wire.hello_to_json(worker.hello)})
            _answer(Judge(worker, parse_profile(profile)), seed, out)
        finally:
            worker.close()
    # Told to end while it ends: nothing is left to do.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _answer(judge: Judge, seed: int, out: int) -> None:
    try:
        while True:
            task, _ = wire.read(0)
            cases = [case_by_id(id, seed) for id in task["ids"]]
            if "fault" in task:
                finding = find_cause(judge, cases[0], fault_from_json(task["fault"]))
                _reply(out, {"finding": asdict(finding)})
            else:
                _reply(out, {"verdicts": [asdict(v) for v in judge.judge(cases)]})
    except wire.ClosedError:
        return
    except BackendError as error:
        _reply(out, {"lost": str(error)})


def _reply(out: int, header: wire.Json) -> None:
    wire.write(out, wire.Packer().frame(header))


def _leave(signal_number: int, frame: FrameType | None) -> None:
    sys.exit(128 + signal_number)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
