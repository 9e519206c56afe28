"""`--log-protocol`: every line both ways, with its time and direction, whatever becomes of it."""

import json
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from uop.conformance.protocol.log import ProtocolLog, begin_log
from uop.conformance.workers.processes import Workplace
from uop.conformance.workers.sessions import start
from uop.conformance.workers.transport import Allowance
from uop.spec.errors import BackendError

WORKER = Path(__file__).resolve().parents[1] / "conformance" / "worker_for_tests.py"
CASE = "op/ADD/float32/edges/0"
PROGRAM = """\
case sum
%0 = PARAM [2] {slot=0, dtype=float32}
%1 = ADD %0, %0
input 0 = [1.0, 2.0]
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sum.uop").write_text(PROGRAM)


def words(fault: str) -> list[str]:
    return [sys.executable, "-I", "-S", str(WORKER), fault]


def worker(fault: str) -> str:
    return "command:" + shlex.join(words(fault))


@dataclass(frozen=True, slots=True)
class Logged:
    """A line of a log."""

    time: datetime
    pid: int
    direction: str
    text: str


def logged() -> Iterator[Logged]:
    head, *lines = Path("lines.log").read_text().splitlines()
    assert head.startswith("# uop ")
    for line in lines:
        time, pid, direction, text = line.split(" ", 3)
        yield Logged(datetime.fromisoformat(time), int(pid), direction, text)


@pytest.mark.parametrize(
    "command",
    [
        ("conform", worker("none"), "--case", CASE, "-n", "1", "--profile", "strict"),
        ("replay", "sum.uop", worker("none")),
        ("worker", "check", "--", *words("none")),
    ],
    ids=lambda command: command[0],
)
def test_each_request_stands_before_its_reply(uop: Any, command: tuple[str, ...]) -> None:
    at = command.index("--") if "--" in command else len(command)
    assert uop(*command[:at], "--log-protocol", "lines.log", *command[at:]).code == 0
    lines = list(logged())
    assert [line.direction for line in lines] == [">", "<"] * (len(lines) // 2)
    assert [line.time for line in lines] == sorted(line.time for line in lines)
    assert len({line.pid for line in lines}) == 1
    for request, reply in zip(lines[::2], lines[1::2], strict=True):
        assert json.loads(request.text)["id"] == json.loads(reply.text)["id"]
    assert [json.loads(line.text)["do"] for line in lines[:3:2]] == ["hello", "run"]


@pytest.mark.parametrize("fault", ["garbage", "half-and-exit", "exit", "twice"])
def test_what_is_no_reply_is_logged_too(fault: str, uop: Any) -> None:
    Path("sum.uop").write_text(PROGRAM.replace("ADD", "MUL"))
    uop("replay", "sum.uop", worker(fault), "--log-protocol", "lines.log")
    lines = list(logged())
    pid = next(line.pid for line in lines)
    texts = [line.text for line in lines if line.pid == pid and line.direction == "<"]
    if fault == "garbage":
        assert texts[1:4] == ["loading...", "[1, 2]", '{"id": 12345}']
    if fault == "half-and-exit":
        assert texts[1].startswith('{"id": 1')
        assert not texts[1].endswith("}")
    if fault == "exit":
        assert len(texts) == 1
    if fault == "twice":
        assert texts[1] == texts[2]


def test_an_older_log_is_replaced_and_its_folder_made(uop: Any) -> None:
    command = ("replay", "sum.uop", worker("none"), "--log-protocol", "below/lines.log")
    assert uop(*command).code == 0
    size = Path("below/lines.log").stat().st_size
    assert uop(*command).code == 0
    assert Path("below/lines.log").stat().st_size == size


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("conform", "interpreter", "--log-protocol", "l"), "expected command:PROGRAM, found"),
        (("conform", worker("none"), "interpreter", "--log-protocol", "l"), "found 'interpreter'"),
        (("replay", "sum.uop", "interpreter", "--log-protocol", "l"), "found 'interpreter'"),
        (("replay", "sum.uop", "--emit-requests", "--log-protocol", "l"), "no --emit-requests"),
        (("replay", "report.json", "--log-protocol", "l"), "for programs, not for a report"),
        (("conform", worker("none"), "--log-protocol", "."), "cannot write ."),
        (("conform", worker("none"), "--log-protocol", "sum.uop/l"), "cannot write sum.uop/l"),
        (("worker", "check", "--log-protocol", "sum.uop/l", "x"), "cannot write sum.uop/l"),
        (("conform", worker("none"), "--log-protocol", "x" * 300), "cannot write"),
    ],
)
def test_a_log_that_cannot_be_is_refused_before_anything_runs(
    arguments: tuple[str, ...], said: str, uop: Any
) -> None:
    outcome = uop(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err
    assert not Path("l").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_told_before_anything_runs(uop: Any) -> None:
    Path("full.log").symlink_to("/dev/full")
    outcome = uop("conform", worker("none"), "--log-protocol", "full.log")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == (
        "error: --log-protocol: cannot write full.log: No space left on device\n"
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_disk_that_is_full_later_costs_the_log_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = ProtocolLog(Path("/dev/full"))
    for _ in range(3):
        log.write(1, ">", b"{}\n")
    said = "cannot write /dev/full: No space left on device; the log ends here\n"
    assert capsys.readouterr().err == said


def test_a_worker_that_does_not_start_leaves_what_was_said(tmp_path: Path) -> None:
    begin_log(Path("lines.log"), ("uop", "a b"))
    with pytest.raises(BackendError):
        start(
            worker("mute"),
            Workplace(tmp_path / "w"),
            Allowance(start_seconds=0.5),
            Path("lines.log"),
        )
    (line,) = logged()
    assert (line.direction, json.loads(line.text)["do"]) == (">", "hello")
