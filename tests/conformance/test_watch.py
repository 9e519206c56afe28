"""The time that a process has had: without what it waited for a processor; and its memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from uop.conformance.workers import watch
from uop.conformance.workers.guard import PROC
from uop.conformance.workers.processes import MARK, workplace
from uop.conformance.workers.watch import Patience, Watch, kills, tree_of

SPIN = "print(flush=True)\nwhile True: pass"
SLEEP = "print(flush=True)\nimport time\ntime.sleep(3600)"
TWO = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {SLEEP!r}])\n{SLEEP}"
LIMIT = 1.0


@contextmanager
def running(code: str) -> Iterator[int]:
    """A process that leads a session, once it has begun."""
    command = [sys.executable, "-I", "-S", "-c", code]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield process.pid
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def seconds_of(patience: Patience) -> float:
    """How long it waits in all."""
    begun = time.monotonic()
    while left := patience.left():
        time.sleep(left)
    return time.monotonic() - begun


@pytest.mark.parametrize("code", [SPIN, SLEEP], ids=["spins", "sleeps"])
def test_what_spins_or_sleeps_runs_out_of_time(code: str) -> None:
    with running(code) as pid:
        assert seconds_of(Patience(Watch(pid), LIMIT)) >= LIMIT


@pytest.fixture
def delays(monkeypatch: pytest.MonkeyPatch) -> dict[int, float]:
    """By thread the seconds that it has waited, as the system says."""
    waited: dict[int, float] = {}
    monkeypatch.setattr(watch, "_delays", lambda pid: iter(waited.items()))
    monkeypatch.setattr(watch, "TICK", 0.05)
    return waited


def test_the_time_in_which_it_waits_for_a_processor_does_not_count(
    delays: dict[int, float],
) -> None:
    with running(SLEEP) as pid:
        delays |= {1: 100.0}
        patience = Patience(Watch(pid), 0.4)
        begun = time.monotonic()
        while left := patience.left():
            # It waits all the time, in two threads, for a second.
            if time.monotonic() < begun + 1:
                delays |= {k: delays.get(k, 0.0) + left for k in (1, 2)}
            time.sleep(left)
        assert time.monotonic() - begun > 1.2


def test_with_a_wall_the_time_in_which_it_waits_counts_too(delays: dict[int, float]) -> None:
    with running(SLEEP) as pid:
        patience = Patience(Watch(pid), 0.4, is_wall=True)
        delays |= {1: 100.0}
        assert 0.4 <= seconds_of(patience) < 1


def test_processor_time_is_bounded_where_threads_wait_all_the_time(
    delays: dict[int, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    with running(SPIN) as pid:
        patience = Patience(Watch(pid), 0.3)
        while left := patience.left():
            delays |= {1: delays.get(1, 0.0) + 1}
            time.sleep(left)
        assert patience.watch.processor - patience.processor > 0.3


def test_a_system_that_does_not_say_how_long_threads_wait_is_asked_for_its_load(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch, "_delays", lambda pid: iter(()))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(watch.psutil, "getloadavg", lambda: (8.0, 0.0, 0.0))
    with running(SLEEP) as pid:
        seen = Watch(pid)
        seen.look()
        time.sleep(0.4)
        seen.look()
    # Of eight that want one of two processors, each waits three quarters of the time.
    assert 0.3 <= seen.waited <= 0.75 * (seen.looked)


def test_a_tree_has_the_session_and_what_is_below_it() -> None:
    with running(TWO) as pid:
        pids = tree_of(pid)
        assert pid in pids
        assert len(pids) == 2
        seen = Watch(pid)
        seen.look()
        assert seen.pids == pids
        assert 1 << 20 < seen.resident == seen.peak
    deadline = time.monotonic() + 30.0
    while tree_of(pid):
        # What was killed takes a moment to end.
        assert time.monotonic() < deadline


def test_the_system_counts_what_it_kills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = tmp_path / "vmstat", tmp_path / "memory.events"
    monkeypatch.setattr(watch, "COUNTERS", (one, other))
    assert kills() == 0
    one.write_text("nr_free_pages 12\noom_kill 3\n")
    other.write_text("low 0\noom 7\noom_kill 2\n")
    assert kills() == 5


IN_A_WORKPLACE = f"""
import os, subprocess, sys, time
from uop.conformance.workers.processes import workplace
with workplace() as place:
    child = subprocess.Popen([sys.executable, "-c", {SLEEP!r}], env=place.environment,
                             stdout=subprocess.DEVNULL, start_new_session=True)
    print(place.folder, child.pid, flush=True)
    time.sleep(3600 if sys.argv[1] == "killed" else 0)
"""


@pytest.mark.skipif(not PROC.exists(), reason="the system does not show environments")
@pytest.mark.parametrize("how", ["killed", "left"])
def test_a_workplace_ends_with_its_process(how: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", IN_A_WORKPLACE, how], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    folder, child = process.stdout.readline().split()
    if how == "killed":
        process.kill()
    process.communicate()
    deadline = time.monotonic() + 20
    while (Path(folder).exists() or is_there(int(child))) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(folder).exists()
    assert not is_there(int(child))


def is_there(pid: int) -> bool:
    try:
        return (PROC / str(pid) / "stat").read_text("ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_workplace_marks_what_is_started_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POCL_CACHE_DIR", raising=False)
    with workplace() as place:
        assert place.environment[MARK] == place.mark
        assert Path(place.environment["TMPDIR"]) == place.folder
        assert place.of_backend["POCL_CACHE_DIR"].startswith(str(place.folder))
    assert not place.folder.exists()
