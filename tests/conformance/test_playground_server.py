"""`uop serve`: the page in Chromium, who gets an answer, and hostile requests."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlencode

import browser
import psutil
import pytest

from uop.compiler.pipeline import STAGES

pytest.importorskip("uvicorn", reason="needs the extra serve")

FOLDER = Path(__file__).parents[2] / "examples"
SOFTMAX = (FOLDER / "softmax.uop").read_text()
TEXTS = [path.read_text() for path in sorted(FOLDER.glob("*.uop"))]
FOUR = "%0 = CONST {value=2, dtype=int32}\n%1 = ADD %0, %0"
QUESTION = {"text": FOUR, "target": "opencl", "seed": 0}
LONGEST = 100
"""The most seconds for an answer."""


@dataclass(frozen=True)
class Server:
    """A server: its process, and where it listens."""

    process: subprocess.Popen[str]
    port: int

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def reply(
        self, path: str, question: object = None, method: str = "POST", **headers: str
    ) -> tuple[int, str, dict[str, str]]:
        """The status, the body and the headers."""
        body = question if isinstance(question, bytes) else json.dumps(question).encode()
        connection = HTTPConnection("127.0.0.1", self.port, timeout=LONGEST)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, body, {"Content-Type": "application/json", **named})
            reply = connection.getresponse()
            return (
                reply.status,
                reply.read().decode(),
                {k.lower(): v for k, v in reply.getheaders()},
            )
        finally:
            connection.close()

    def status_of(self, raw: bytes, is_whole: bool) -> int:
        """The status of the reply to bytes, 0 without one. Behind a part nothing more comes."""
        with socket.create_connection(("127.0.0.1", self.port), LONGEST) as peer:
            try:
                peer.sendall(raw)
                if not is_whole:
                    peer.shutdown(socket.SHUT_WR)
                heard = peer.recv(1 << 16)
            except OSError:
                return 0
        return int(heard.split()[1]) if heard.startswith(b"HTTP/1.1 ") else 0


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    command = [sys.executable, "-P", "-m", "uop", "serve", "--port", "0"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    yield Server(process, int(re.findall(r":(\d+)/", line)[0]))
    below = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=LONGEST)
    assert (process.returncode, said.split()) == (130, ["interrupted"])
    assert psutil.wait_procs(below, 10)[1] == [], "all that it started ends with it"


def test_it_evaluates(server: Server) -> None:
    status, body, headers = server.reply("/evaluate", QUESTION)
    assert (status, headers["content-type"]) == (200, "application/json")
    assert json.loads(body)["outputs"][0]["elements"] == [
        {"place": "", "value": "4", "accepted": "4"}
    ]
    for name in ("cache-control", "content-security-policy", "x-content-type-options"):
        assert name in headers


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "example.org"},
        {"Host": "127.0.0.1"},
        {"Host": "127.0.0.1.example.org:{port}"},
        {"Host": ""},
        {"Origin": "http://example.org"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Origin": "http://localhost:{port}"},
    ],
)
@pytest.mark.parametrize("path", ["/", "/evaluate", "/nowhere"])
def test_what_comes_from_elsewhere_gets_nothing(
    server: Server, headers: dict[str, str], path: str
) -> None:
    named = {name: value.replace("{port}", str(server.port)) for name, value in headers.items()}
    method = "GET" if path == "/" else "POST"
    status, body, found = server.reply(path, QUESTION, method, **named)
    assert (status, body) == (403, "")
    assert not any(name.startswith("access-control") for name in found)


def test_its_own_names_get_an_answer(server: Server) -> None:
    for name in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
        host = f"{name}:{server.port}"
        assert server.reply("/", None, "GET", Host=host)[0] == 200
        assert server.reply("/evaluate", QUESTION, Host=host, Origin=f"http://{host}")[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "status", "said"),
    [
        ("GET", "/nowhere", 404, "expected one of /, /evaluate, /check, /judge, /compare"),
        ("GET", "/../../etc/passwd", 404, "expected one of"),
        ("POST", "/", 405, "GET"),
        ("GET", "/evaluate", 405, "expected POST"),
        ("OPTIONS", "/evaluate", 405, "expected POST"),
        ("DELETE", "/evaluate", 405, "expected POST"),
    ],
)
def test_another_method_or_path(
    server: Server, method: str, path: str, status: int, said: str
) -> None:
    found, body, _ = server.reply(path, QUESTION, method)
    assert found == status
    assert said in body


@pytest.mark.parametrize(
    ("path", "question", "status", "said"),
    [
        ("/evaluate", b"", 400, "expected JSON"),
        ("/evaluate", b"\xff{", 400, "expected JSON"),
        ("/evaluate", b"[" * 100_000, 400, "expected JSON"),
        ("/evaluate", [], 400, "an object with text, target, seed"),
        ("/evaluate", {**QUESTION, "more": 1}, 400, "an object with"),
        ("/evaluate", {**QUESTION, "text": 3}, 400, "text: expected str"),
        ("/evaluate", {**QUESTION, "seed": True}, 400, "seed: expected int"),
        ("/evaluate", {**QUESTION, "seed": -1}, 400, "expected numbers from 0"),
        ("/evaluate", {**QUESTION, "seed": 1 << 80}, 400, "expected numbers from 0"),
        ("/evaluate", {**QUESTION, "target": "metal"}, 400, "target: expected one of opencl"),
        ("/evaluate", {**QUESTION, "text": "\ud800"}, 400, "half a character"),
        ("/evaluate", {**QUESTION, "text": " " * 70_000}, 413, "65536 characters"),
        ("/evaluate", b" " * 1_000_000, 413, "bytes"),
        ("/judge", {**QUESTION, "step": -1}, 400, "expected numbers from 0"),
        (
            "/compare",
            {"text": "", "seed": 0, "backend": "command:ls"},
            400,
            "backend: expected one",
        ),
        ("/compare", {"text": "", "seed": 0, "backend": "os:system"}, 400, "backend: expected one"),
    ],
)
def test_a_bad_question(
    server: Server, path: str, question: object, status: int, said: str
) -> None:
    found, body, _ = server.reply(path, question)
    assert found == status, body
    assert said in body


def test_a_question_is_json(server: Server) -> None:
    """A form of another site cannot send it without asking before."""
    assert server.reply("/evaluate", QUESTION, Content_Type="text/plain")[0] == 415


PUT = ("%", "9" * 40, "\n", "{", "\0", "\U0001f701", "[1,", "nan", "", " = ")
NATIVE = 'CUSTOM %0 {fmt="system({0})", dtype=int32}'
"""What is written into a program."""


def hostile_program(random: Random) -> str:
    """A broken example, noise, or a program that asks for too much."""
    text, big = random.choice(TEXTS), random.choice([1 << 20, 1 << 40, 10**30])
    for _ in range(random.randrange(4)):
        at = random.randrange(len(text))
        text = text[:at] + random.choice(PUT) + text[at + random.randrange(9) :]
    one = "%0 = CONST {value=1, dtype=int32}\n"
    chain = (f"%{k + 1} = ADD %{k}, %{k}\n" for k in range(random.randrange(200)))
    others = [
        "".join(random.choices("%0123456789 =ADD{}[],\n", k=200)),
        f"%0 = PARAM [{big}] {{slot=0, dtype=float64}}\n%1 = EXP2 %0",
        f"{one}%1 = EXPAND %0, [{big}]\n%2 = REDUCE %1 {{op=ADD, axes=(0)}}",
        f"{one}%1 = {NATIVE}",
        one + "".join(chain),
        one + "input 0 = zlib:" + "0" * 64 + ":AAAA\n",
    ]
    return random.choice([text, random.choice(others)])


def hostile(random: Random, port: int) -> tuple[bytes, bool]:
    """A request that means no good, and whether it is whole."""
    program = hostile_program(random)
    kinds: dict[str, dict[str, Any]] = {
        "/evaluate": {"text": program, "target": "opencl", "seed": 0},
        "/check": {"text": program, "target": "cuda", "seed": 1},
        "/judge": {"text": program, "target": "opencl", "seed": 0, "step": random.choice([0, 99])},
        "/compare": {"text": program, "seed": 0, "backend": random.choice(["numpy", "os:system"])},
        "/nowhere": {},
    }
    path = random.choices(list(kinds), weights=[8, 2, 2, 1, 1])[0]
    question = kinds[path]
    if random.random() < 0.2:
        bad = random.choice([None, {}, [[]], 1.5, "x", -1, "\ud800"])
        question = {**question, random.choice([*question, "x"]): bad}
    body = json.dumps(question).encode()
    own = f"127.0.0.1:{port}"
    host = random.choice([*[own] * 8, "evil.example", f"{own}\r\nHost: evil.example", ""])
    method = random.choice([*["POST"] * 12, "GET", "PUT", "TRACE", "\U0001f4a5", ""])
    more = random.choice([*[""] * 9, "Origin: null\r\n", f"X: {'y' * 70_000}\r\n"])
    length = len(body) + random.choice([*[0] * 9, 9, 10**12])
    head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{more}Content-Type: application/json\r\n"
    head += f"Content-Length: {length}\r\nConnection: close\r\n\r\n"
    return head.encode() + body, length == len(body)


@pytest.mark.parametrize(
    ("count", "together"), [(40, 4), pytest.param(1000, 8, marks=pytest.mark.slow)]
)
def test_it_survives_hostile_requests(server: Server, count: int, together: int) -> None:
    requests = [hostile(Random(number), server.port) for number in range(count)]
    with ThreadPoolExecutor(together) as pool:
        found = list(pool.map(lambda request: server.status_of(*request), requests))
    assert set(found) <= {0, 100, 200, 400, 403, 404, 405, 408, 413, 415, 422, 431}, set(found)
    assert found.count(200) > count // 10
    assert server.reply("/evaluate", QUESTION)[0] == 200
    assert server.process.poll() is None
    held = psutil.Process(server.process.pid)
    assert held.memory_info().rss < 1 << 29
    # Beside the fork server nothing is left of them.
    assert len(held.children(recursive=True)) <= 1


def test_no_more_questions_than_it_can_answer(server: Server) -> None:
    """Too many at a time are told so, and all others are answered."""
    with ThreadPoolExecutor(40) as pool:
        found = list(pool.map(lambda _: server.reply("/evaluate", QUESTION)[0], range(40)))
    assert set(found) <= {200, 503}
    assert found.count(200) >= 16


@pytest.mark.slow
def test_a_program_that_takes_too_long_is_ended(server: Server) -> None:
    text = """\
%0 = RANGE 1000000 {id=0, axis_type=LOOP}
%1 = PARAM [1] {slot=0, dtype=int32, addrspace=GLOBAL}
%2 = INDEX %1, 0
%3 = AFTER %2, %0
%4 = LOAD %3
%5 = ADD %4, %4
%6 = STORE %3, %5
%7 = END %6, %0
%8 = SINK %7
%9 = BUFFER [1] {slot=0, dtype=int32, addrspace=GLOBAL}
%10 = CALL %8, %9
%11 = SINK %10
input 0 = [1]
"""
    status, body, _ = server.reply("/evaluate", {**QUESTION, "text": text})
    assert (status, body) == (422, "it takes more than 5 s of processor time")
    assert server.reply("/evaluate", QUESTION)[0] == 200


@pytest.fixture
def tab(tmp_path: Path) -> Iterator[browser.Tab]:
    with browser.tab(tmp_path) as opened:
        yield opened
        assert opened.logged == []


def opened(tab: browser.Tab, server: Server, **state: object) -> None:
    tab.open(f"{server.address}#{urlencode(state)}")
    tab.until("document.body.dataset.ready !== undefined")


def text_of(tab: browser.Tab, id: str) -> str:
    return str(tab.say(f"document.getElementById('{id}').textContent"))


def test_the_slider_walks_all_stages(tab: browser.Tab, server: Server) -> None:
    for width in (380, 1200):
        tab.size(width)
        opened(tab, server, program=SOFTMAX)
        tab.say("document.getElementById('stage').focus()")
        walked = []
        for _ in range(len(STAGES) + 1):
            walked.append(re.findall(r": (\w+)", text_of(tab, "stage-name"))[0])
            assert tab.say("document.querySelectorAll('#graph svg > g').length") > 0
            assert tab.say("document.documentElement.scrollWidth <= innerWidth")
            tab.press("ArrowRight")
        assert walked == ["program", *(stage.name for stage in STAGES)]
    tab.until("document.getElementById('verdict').textContent.includes('keeps the meaning')")
    own = (server.address, "data:", "about:")
    assert [name for name in tab.requests if not name.startswith(own)] == []


def test_a_link_restores_what_it_was_taken_of(tab: browser.Tab, server: Server) -> None:
    opened(tab, server, program=TEXTS[1], target="cuda", seed=3)
    tab.say("document.getElementById('step').focus()")
    for _ in range(3):
        tab.press("ArrowRight")
    tab.say("document.getElementById('nodes').children[2].click()")
    ids = ("stage-name", "step-name", "properties", "outputs", "lines")
    before, address = [text_of(tab, id) for id in ids], tab.say("location.href")
    tab.open(address)
    tab.until("document.body.dataset.ready !== undefined")
    assert [text_of(tab, id) for id in ids] == before
    assert "extern" in before[-1]
    assert tab.say(
        "document.querySelector('#nodes .chosen') == document.getElementById('nodes').children[2]"
    )


def test_it_is_evaluated_while_it_is_typed(tab: browser.Tab, server: Server) -> None:
    opened(tab, server, program=FOUR)
    tab.say("document.getElementById('text').focus()")
    tab.press("End")
    tab.call("Input.insertText", text="\n%2 = NEGG %1")
    tab.until("document.getElementById('wrong').textContent.startsWith('line ')")
    assert "column 6" in text_of(tab, "wrong")
    assert tab.say("document.querySelector('mark').textContent") == "NEGG"


def test_the_nodes_are_reached_by_keys(tab: browser.Tab, server: Server) -> None:
    opened(tab, server, program=SOFTMAX)
    tab.say("document.querySelector('#nodes [tabindex=\"0\"]').focus()")
    for key, node in (("Home", 0), ("ArrowDown", 1), ("ArrowDown", 2), ("ArrowUp", 1), ("End", 7)):
        tab.press(key)
        assert f"node={node}" in tab.say("location.hash")
        assert tab.say("document.activeElement.classList.contains('chosen')")
        assert tab.say("document.querySelectorAll('#graph .chosen').length") == 1
    assert "float32" in text_of(tab, "properties")


def test_lines_of_the_source_lead_to_nodes(tab: browser.Tab, server: Server) -> None:
    opened(tab, server, program=SOFTMAX)
    links = "[...document.querySelectorAll('#lines a')]"
    tab.say(f"{links}.find(a => a.textContent.includes('exp2')).click()")
    tab.until("document.querySelector('#nodes .chosen')")
    assert "EXP2" in tab.say("document.querySelector('#nodes .chosen').textContent")


def test_others_are_asked(tab: browser.Tab, server: Server) -> None:
    opened(tab, server, program=FOUR)
    tab.say("document.getElementById('compare').click()")
    tab.until(
        "document.getElementById('others').textContent.includes('numpyevery element is accepted')"
    )


def test_a_port_that_is_taken_and_an_address_of_others(uop: Any, server: Server) -> None:
    outcome = uop("serve", "--port", server.port)
    assert (outcome.code, f"port {server.port}: Address already in use" in outcome.err) == (2, True)
    assert uop("serve", "--host", "0.0.0.0").code == 2


def test_without_the_extra(uop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    outcome = uop("serve", "--port", "0")
    assert (outcome.code, 'pip install "uop[serve]"' in outcome.err) == (2, True)
