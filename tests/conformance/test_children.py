"""Work in a child: what it told is kept, and how it ended is said."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from uop.conformance import wire
from uop.conformance.backends.children import how_ended, in_child


def frame(number: int) -> bytes:
    return wire.Packer().frame({"number": number})


def test_all_is_told() -> None:
    ended = in_child(lambda: [frame(1), frame(2)])
    assert [header["number"] for header, _ in ended.told] == [1, 2]
    assert ended.how == ""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_what_was_told_before_a_signal_is_kept(number: signal.Signals) -> None:
    def work() -> Iterator[bytes]:
        yield frame(1)
        os.kill(os.getpid(), number)
        yield frame(2)

    ended = in_child(work)
    assert [header["number"] for header, _ in ended.told] == [1]
    assert ended.how == f"the process was ended by {number.name}"


def test_an_error_ends_the_child_alone(capfd: pytest.CaptureFixture[str]) -> None:
    def work() -> Iterator[bytes]:
        yield frame(1)
        raise KeyError("lost")

    ended = in_child(work)
    assert len(ended.told) == 1
    assert ended.how == "the process ended with exit code 1"
    assert "KeyError: 'lost'" in capfd.readouterr().err


def test_in_words() -> None:
    assert [how_ended(0), how_ended(3)] == ["", "the process ended with exit code 3"]
