"""A process that judges: makes the cases it is told by id, and has a worker of its own."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import FrameType

from uop.conformance import wire
from uop.conformance.card.card import observe
from uop.conformance.case import CaseId
from uop.conformance.delivery import not_listed
from uop.conformance.exercised import exercised
from uop.conformance.generate import case_by_id
from uop.conformance.judge import Judge, Status, Verdict, fault_from_json
from uop.conformance.options import OBSERVED, profile_of_run
from uop.conformance.repro import find_cause
from uop.conformance.sessions import start
from uop.conformance.workers import Allowance
from uop.spec.errors import BackendError, UopError
from uop.spec.latitude import STRICT, parse_profile


def main(backend: str, profile: str, seed: str, timeout: str = "") -> None:
    """Say who is judged, then answer tasks until the other side closes."""
    out = os.dup(1)
    os.dup2(2, 1)
    signal.signal(signal.SIGTERM, _leave)
    with tempfile.TemporaryDirectory(prefix="uop-", ignore_cleanup_errors=True) as folder:
        try:
            worker = start(
                backend, Path(folder), Allowance.within(float(timeout) if timeout else None)
            )
        except UopError as error:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            _reply(out, {"lost": str(error)})
            return
        try:
            _reply(out, {"hello": wire.hello_to_json(worker.hello)})
            chosen = profile_of_run(profile, worker.hello)
            # One that is observed comes as a task.
            known = STRICT if chosen == OBSERVED else parse_profile(chosen)
            _answer(Judge(worker, known), int(seed), out)
        finally:
            worker.close()
    # Told to end while it ends: nothing is left to do.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _answer(judge: Judge, seed: int, out: int) -> None:
    try:
        while True:
            task, _ = wire.read(0)
            if "card" in task:
                _reply(out, {"card": observe(judge.session).to_json()})
            elif "profile" in task:
                judge.profile = parse_profile(task["profile"])
                _reply(out, {})
            elif "fault" in task:
                case = case_by_id(task["ids"][0], seed)
                finding = find_cause(judge, case, fault_from_json(task["fault"]))
                _reply(out, {"finding": asdict(finding)})
            else:
                _reply(out, _judged(judge, task["ids"], seed))
    except wire.ClosedError:
        return
    except BackendError as error:
        _reply(out, {"lost": str(error)})


def _judged(judge: Judge, ids: Sequence[str], seed: int) -> wire.Json:
    """One verdict per id, and what each case exercises, which is nothing where it is skipped.

    A case that the backend would not be sent is not made at all.
    """
    reasons = {id: not_listed(CaseId.parse(id), judge.session.hello) for id in ids}
    made = {id: case_by_id(id, seed) for id, reason in reasons.items() if not reason}
    judged = {verdict.id: verdict for verdict in judge.judge(list(made.values()))}
    verdicts = [
        judged.get(id) or Verdict(id, Status.SKIPPED, reason=r) for id, r in reasons.items()
    ]
    return {
        "verdicts": [asdict(v) for v in verdicts],
        "exercised": [
            None if v.status is Status.SKIPPED else exercised(made[v.id]) for v in verdicts
        ],
        "peak": judge.session.peak,
    }


def _reply(out: int, header: wire.Json) -> None:
    wire.write(out, wire.Packer().frame(header))


def _leave(signal_number: int, frame: FrameType | None) -> None:
    sys.exit(128 + signal_number)


if __name__ == "__main__":
    main(*sys.argv[1:])
