"""Hostile files: each ends in seconds, in little memory, with one line that names it."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import struct
import threading
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from within_limits import Ended, uop

PARAM = "%0 = PARAM [2] {slot=0, dtype=int32}\n"
PROGRAM = f"{PARAM}%1 = NEG %0\ninput 0 = [1,2]\n"
HELD = 1 << 30
"""The most bytes that a command may hold for a file that it refuses."""
MILLION = 10**6
has_devices = pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs devices")


def refused(ended: Ended, name: str, *said: str) -> None:
    """A command ended with one line that names the file, in little memory."""
    assert ended.code == 2, ended
    assert ended.out == ""
    assert "Traceback" not in ended.err
    assert len(ended.err) < 5000
    assert name in ended.err
    assert all(part in ended.err for part in said), ended.err
    assert ended.peak < HELD


def zeros(size: int) -> str:
    """Many bytes in one short word."""
    packer = zlib.compressobj(9)
    part = bytes(1 << 20)
    digest = hashlib.sha256()
    packed = b""
    for _ in range(size >> 20):
        packed += packer.compress(part)
        digest.update(part)
    packed += packer.flush()
    return f"zlib:{digest.hexdigest()}:{base64.b64encode(packed).decode()}"


def twelve() -> str:
    """Twelve inputs of 1 GiB, of one word of 1 MiB."""
    size, word = 1 << 30, zeros(1 << 30)
    lines = [f"%{k} = PARAM [{size}] {{slot={k}, dtype=uint8}}" for k in range(12)]
    lines += [f"%{11 + k} = ADD %{10 + k if k > 1 else 0}, %{k}" for k in range(1, 12)]
    return "\n".join([*lines, *(f"input {k} = {word}" for k in range(12))])


def several() -> str:
    """Inputs of which each is small enough, and all are not."""
    size, word = 96 << 20, zeros(96 << 20)
    lines = [f"%{k} = PARAM [{size}] {{slot={k}, dtype=uint8}}" for k in range(3)]
    lines += ["%3 = ADD %0, %1", "%4 = ADD %3, %2", *(f"input {k} = {word}" for k in range(3))]
    return "\n".join(lines)


TEXTS: dict[str, tuple[Callable[[], str | bytes], str]] = {
    "empty": (lambda: "", "expected a node"),
    "NULs": (lambda: bytes(MILLION), "'\\x00'"),
    "no UTF-8": (lambda: b"%0 = \xff", "1:6: expected UTF-8 text"),
    "two BOMs": (lambda: b"\xef\xbb\xbf" * 2 + PROGRAM.encode(), "1:1: "),
    "UTF-16": (lambda: PROGRAM.encode("utf-16"), "expected UTF-8 text"),
    "cut off": (lambda: PROGRAM[:30], "1:"),
    "empty lines": (lambda: "\n" * MILLION, "expected a node"),
    "comments": (lambda: "; x\n" * MILLION, "expected a node"),
    "parentheses": (lambda: f"%0 = CONST {{value={'(' * MILLION}", "expected a value"),
    "brackets": (lambda: f"{PARAM}input 0 = {'[' * MILLION}", "expected a value"),
    "closed brackets": (lambda: f"{PARAM}input 0 = {'[' * 5000}{']' * 5000}", "int32[2]"),
    "digits": (lambda: f"%0 = CONST {{value={'9' * MILLION}}}", "too many digits"),
    "digits of a float": (lambda: f"%0 = CONST {{value={'9' * MILLION}.5, dtype=float32}}", "1:12"),
    "digits of a node": (lambda: f"%{'9' * MILLION} = NEG %0", "1:1"),
    "digits of an exponent": (lambda: f"%0 = CONST {{value=0x1p{'9' * 4000}}}", "a.uop:1:12"),
    "a long op": (lambda: f"%0 = {'X' * MILLION} %0", "unknown op 'XXX"),
    "a long dtype": (lambda: f"%0 = PARAM [2] {{slot=0, dtype={'X' * MILLION}}}", "a dtype"),
    "a long field": (lambda: f"%0 = PARAM [2] {{{'X' * MILLION}=0, dtype=int32}}", "1:16"),
    "a long word": (lambda: "x" * (100 * MILLION), "... (100,000,000 characters)"),
    "a long edition": (lambda: f"edition {'X' * MILLION}", "no edition XXX"),
    "a long profile": (lambda: f"profile {'X' * MILLION}", "profile: expected"),
    "a long string": (lambda: f'{PARAM}input 0 = "{"x" * MILLION}', "a string without end"),
    "an escape": (lambda: f'{PARAM}case "\x1b[2J"\n', "1"),
    "many axes": (lambda: f"%0 = PARAM [{','.join(['2'] * 100_000)}] {{slot=0, dtype=int32}}", ""),
    "a list of millions": (lambda: f"{PARAM}input 0 = [{'1,' * 5 * MILLION}]", "tokens in a line"),
    "sets of millions": (lambda: f"{PARAM}accept 0 = {'1,' * 5 * MILLION}1", "tokens in a line"),
    "a set of a large result": (
        lambda: "%0 = PARAM [100000000000] {slot=0, dtype=int8}\n%1 = NEG %0\naccept 0 = any",
        "bytes for all inputs and results of the file",
    ),
    "a size of 10^18": (
        lambda: f"%0 = PARAM [{10**18}] {{slot=0, dtype=int32}}\ninput 0 = base64:AAAA",
        "expected 4000000000000000000 bytes for int32[1000000000000000000], found 3",
    ),
    "12 inputs of 1 GiB": (twelve, "bytes for all inputs and results of the file"),
    "3 inputs of 96 MiB": (several, ":8:11: expected at most 268,435,456 bytes for all inputs"),
    "more data than the shape has": (
        lambda: f"{PARAM}input 0 = {zeros(1 << 20)}",
        "expected at most 8 bytes, found more in the compressed data",
    ),
    "data that are cut off": (lambda: f"{PARAM}input 0 = zlib:{'0' * 64}:AAAA", "2:11: "),
    "a chain to itself": (lambda: "%0 = NEG %0", "not defined before this line"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_refused_in_its_place(tmp_path: Path, name: str) -> None:
    make, said = TEXTS[name]
    content = make()
    path = tmp_path / "a.uop"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(uop("run", path, folder=tmp_path), "a.uop", said)


def test_a_deep_program_is_run(tmp_path: Path) -> None:
    chain = "".join(f"%{k} = NEG %{k - 1}\n" for k in range(1, 20_001))
    (tmp_path / "a.uop").write_text(f"{PARAM}{chain}input 0 = [1,2]\n")
    assert uop("run", "a.uop", folder=tmp_path).out == "0 : int32[2] = [1, 2]\n"


@pytest.mark.slow
@has_devices
@pytest.mark.parametrize(
    "words",
    [
        ("run", "/dev/zero"),
        ("compile", "/dev/zero"),
        ("view", "/dev/zero"),
        ("replay", "/dev/zero", "interpreter"),
        ("report", "/dev/zero", "interpreter"),
        ("diff", "/dev/zero", "/dev/zero"),
        ("merge", "/dev/zero"),
        ("conform", "interpreter", "--known", "/dev/zero"),
        ("conform", "interpreter", "--cases", "/dev/zero"),
        ("conform", "interpreter", "--last-failed", "/dev/zero"),
        ("explain", "cases/a.uop/case", "--cases", "/dev/zero"),
        ("known", "migrate", "interpreter", "--known", "/dev/zero"),
        ("run", "/dev/full"),
    ],
    ids=" ".join,
)
def test_what_has_no_end_is_read_up_to_a_limit(tmp_path: Path, words: tuple[str, ...]) -> None:
    device = next(word for word in words if word.startswith("/dev/"))
    refused(uop(*words, folder=tmp_path), device, "expected ")


@pytest.mark.slow
@pytest.mark.parametrize("words", [("run",), ("replay",), ("diff", "a.uop")])
def test_a_large_file_is_not_read(tmp_path: Path, words: tuple[str, ...]) -> None:
    path = tmp_path / "a.uop"
    path.touch()
    os.truncate(path, 1 << 40)
    command, *rest = words
    refused(uop(command, path, *rest, folder=tmp_path), "a.uop", "expected at most ", "found more")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a pipe with a name")
def test_a_pipe_that_is_named_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.uop"
    for command in ("run", "replay"):
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_text, args=(PROGRAM,))
        writer.start()
        backend = ("interpreter",) if command == "replay" else ()
        assert uop(command, pipe, *backend, folder=tmp_path).code == 0
        writer.join()
        pipe.unlink()


@has_devices
def test_stdin_is_a_file_too(tmp_path: Path) -> None:
    ended = uop("run", "/dev/stdin", folder=tmp_path, stdin=PROGRAM.encode())
    assert ended.out == "0 : int32[2] = [-1, -2]\n"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a pipe with a name")
def test_in_a_folder_only_regular_files_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "cases"
    folder.mkdir()
    (folder / "a.uop").write_text(PROGRAM)
    os.mkfifo(folder / "pipe.uop")
    (folder / "folder.uop").mkdir()
    (folder / "loop.uop").symlink_to(folder / "loop.uop")
    (folder / "up").symlink_to(folder)
    (folder / "zero.uop").symlink_to("/dev/zero")
    (folder / "gone.uop").symlink_to(folder / "none")
    ended = uop("replay", folder, "interpreter", folder=tmp_path)
    assert (ended.code, ended.out.count("PASSED")) == (0, 1)
    ended = uop("conform", "interpreter", "--cases", folder, "--level", "cases", folder=tmp_path)
    assert "1 programs" in ended.out
    ended = uop("fuzz", "interpreter", "--corpus", folder, "--time", "1s", folder=tmp_path)
    assert ended.out.count("left alone: ") == 7


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a pipe with a name")
def test_an_exported_suite_has_regular_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "manifest.jsonl")
    refused(uop("judge", tmp_path, tmp_path, folder=tmp_path), "manifest.jsonl", "expected a file")


def head(shape: str, dtype: str = "<i4", length: int | None = None) -> bytes:
    """The head of a .npy file."""
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    size = len(text) if length is None else length
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", size) + text


ARRAYS = {
    "a size of 10^18": (head(f"({10**18},)"), "bytes, found "),
    "no size": (head("(-1,)"), "not a .npy array"),
    "a text as size": (head("('a',)"), "not a .npy array"),
    "cut off": (head("(2,)") + bytes(3), "it is cut off"),
    "a head that is cut off": (head("(2,)", length=60_000), "not a .npy array"),
    "a deep head": (head("(" * 5000), "not a .npy array"),
    "another version": (b"\x93NUMPY\x09\x00" + bytes(90), "not a .npy array"),
    "objects": (head("(2,)", "|O") + bytes(16), "not a .npy array"),
    "empty": (b"", "not a .npy array"),
    "an archive": (b"PK\x03\x04" + bytes(90), "an archive"),
}


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_is_what_its_head_says(tmp_path: Path, name: str) -> None:
    data, said = ARRAYS[name]
    (tmp_path / "a.uop").write_text(PROGRAM)
    (tmp_path / "a.npy").write_bytes(data)
    refused(uop("run", "a.uop", "--input", "0=a.npy", folder=tmp_path), "a.npy", said)


@has_devices
def test_an_array_without_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.uop").write_text(PROGRAM)
    refused(uop("run", "a.uop", "--input", "0=/dev/zero", folder=tmp_path), "/dev/zero", "no")


@pytest.mark.parametrize("in_columns", [False, True])
def test_an_array_has_its_order(tmp_path: Path, in_columns: bool) -> None:
    (tmp_path / "a.uop").write_text("%0 = PARAM [2,3] {slot=0, dtype=int32}\n%1 = NEG %0\n")
    array = np.arange(6, dtype=">i4").reshape(2, 3)
    np.save(tmp_path / "a.npy", np.asfortranarray(array) if in_columns else array)
    ended = uop("run", "a.uop", "--input", "0=a.npy", folder=tmp_path)
    assert "".join(ended.out.split()) == "0:int32[2,3]=[[0,-1,-2],[-3,-4,-5]]"


DOCUMENTS = {
    "empty": b"",
    "no UTF-8": b"\xff\xfe",
    "NULs": bytes(100),
    "a BOM": b"\xef\xbb\xbf{}",
    "deep lists": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "digits": b'{"schema": ' + b"9" * 5000 + b"}",
    "a list": b"[]",
    "a long schema": json.dumps({"schema": "x" * MILLION}).encode(),
    "another schema": b'{"schema": "uop-report/99"}',
    "nothing else": b'{"schema": "uop-report/1"}',
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_is_no_report_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.json").write_bytes(DOCUMENTS[name])
    for words in (("diff", "a.json", "a.json"), ("merge", "a.json"), ("replay", "a.json")):
        refused(uop(*words, folder=tmp_path), "a.json")


TABLES = {
    "empty": b"",
    "no UTF-8": b"\xff",
    "NULs": bytes(100),
    "deep lists": b"known = " + b"[" * 100_000,
    "deep tables": b"[" + b"a." * 100_000 + b"a]",
    "digits": b"known = " + b"9" * 5000,
    "no list": b"known = 7",
    "a number": b"known = [1]",
    "an unknown key": b"known = [{x = 1}]",
    "a file that is none": b'known = [{signature = "a", reason = "b", repro = "/dev/zero"}]',
    "a folder": b'known = [{signature = "a", reason = "b", repro = "."}]',
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_what_is_no_file_of_known_failures_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.toml").write_bytes(TABLES[name])
    refused(uop("conform", "interpreter", "--known", "a.toml", folder=tmp_path), "a.toml")
    if name in ("empty", "deep lists", "digits", "no UTF-8"):
        words = ("conform", "interpreter", "--profile", "a.toml")
        refused(uop(*words, folder=tmp_path), "a.toml")
