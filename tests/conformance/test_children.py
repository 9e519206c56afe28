"""Work in a child: one that ends is made anew, and how it ended is said."""

from __future__ import annotations

import os
import signal

import pytest

from uop.conformance.backends.children import Child, EndedError, how_ended
from uop.conformance.protocol import wire


def task(**header: int) -> bytes:
    return wire.Packer().frame(header)


def work(header: wire.Json, body: bytes) -> bytes:
    if "signal" in header:
        os.kill(os.getpid(), header["signal"])
    return task(process=os.getpid(), twice=2 * header["number"])


def test_one_child_does_all_tasks() -> None:
    child = Child(work)
    answers = [child.ask(task(number=n))[0] for n in range(3)]
    assert [a["twice"] for a in answers] == [0, 2, 4]
    assert len({a["process"] for a in answers} | {os.getpid()}) == 2


def test_a_child_is_made_anew_after_so_many_tasks() -> None:
    child = Child(work, tasks=2)
    processes = [child.ask(task(number=n))[0]["process"] for n in range(4)]
    assert processes[0] == processes[1] != processes[2] == processes[3]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_signal_ends_one_task(number: signal.Signals) -> None:
    child = Child(work)
    child.ask(task(number=1))
    with pytest.raises(EndedError, match=f"the process was ended by {number.name}"):
        child.ask(task(signal=number))
    assert child.ask(task(number=3))[0]["twice"] == 6


def test_an_error_ends_the_child_alone(capfd: pytest.CaptureFixture[str]) -> None:
    child = Child(work)
    with pytest.raises(EndedError, match="the process ended with exit code 1"):
        child.ask(task(other=1))
    assert "KeyError: 'number'" in capfd.readouterr().err


def test_a_child_ends_beside_a_later_one() -> None:
    first, second = Child(work), Child(work)
    process = first.ask(task(number=1))[0]["process"]
    second.ask(task(number=1))
    first.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_in_words() -> None:
    assert how_ended(0) == "the process closed its pipe"
    assert how_ended(3) == "the process ended with exit code 3"
