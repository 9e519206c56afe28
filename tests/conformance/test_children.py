"""Work in a child: one that ends is made anew, and how it ended is said."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

import pytest

from uop.conformance.workers.children import Child, EndedError


@dataclass
class Double:
    number: int


@dataclass
class Doubled:
    process: int
    twice: int


@dataclass
class End:
    signal: int


def work(task: Double | End) -> Doubled:
    if isinstance(task, End):
        os.kill(os.getpid(), task.signal)
    assert isinstance(task, Double)
    if not task.number:
        raise ValueError("nothing to double")
    return Doubled(os.getpid(), 2 * task.number)


def doubled(child: Child, number: int) -> Doubled:
    return child.ask(Double(number), Doubled)


def test_one_child_does_all_tasks() -> None:
    child = Child(work, Double)
    answers = [doubled(child, n) for n in (1, 2, 3)]
    assert [a.twice for a in answers] == [2, 4, 6]
    assert len({a.process for a in answers} | {os.getpid()}) == 2


def test_a_child_is_made_anew_after_so_many_tasks() -> None:
    child = Child(work, Double, tasks=2)
    processes = [doubled(child, n).process for n in (1, 2, 3, 4)]
    assert processes[0] == processes[1] != processes[2] == processes[3]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_signal_ends_one_task(number: signal.Signals) -> None:
    child = Child(work, Double, End)
    doubled(child, 1)
    with pytest.raises(EndedError, match=f"the process was ended by {number.name}"):
        child.ask(End(number), Doubled)
    assert doubled(child, 3).twice == 6


def test_an_error_ends_the_child_alone(capfd: pytest.CaptureFixture[str]) -> None:
    child = Child(work, Double)
    with pytest.raises(EndedError, match="the process ended with exit code 1"):
        doubled(child, 0)
    assert "ValueError: nothing to double" in capfd.readouterr().err


def test_a_task_of_another_type_closes_the_pipe() -> None:
    with pytest.raises(EndedError, match="the process closed its pipe"):
        Child(work, Double).ask(End(signal.SIGTERM), Doubled)


def test_a_child_ends_beside_a_later_one() -> None:
    first, second = Child(work, Double), Child(work, Double)
    process = doubled(first, 1).process
    doubled(second, 1)
    first.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
