"""Native code in files of strangers: what it is, which commands refuse it, what --native does."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kernels import argument, kernel_param, load, program, special, store

from uop.compiler.execute import open_device
from uop.compiler.pipeline import TARGETS, compile, lower
from uop.compiler.runtime.binary import digest, unpack
from uop.conformance.fuzz.corpus import Corpus
from uop.conformance.native import is_native
from uop.conformance.run import Exit
from uop.interpreter.rules.codegen import CUSTOM, INSTRUCTIONS
from uop.spec.args import BinaryArg, CustomArg, InsArg, SourceArg, arg_of
from uop.spec.case import FileCase, UopFile
from uop.spec.dtype import dtypes
from uop.spec.graph import kernels
from uop.spec.ops.names import Op
from uop.spec.text.array import Array
from uop.spec.text.uop_file import print_file
from uop.spec.uop import UOp, const

COUNT = 5
U32 = dtypes.uint32
INPUTS = {slot: Array.of(range(COUNT), U32) for slot in (0, 1)}


def kernel(make: Callable[[UOp], UOp]) -> UOp:
    """A kernel that writes what is made of each element."""
    i = special(COUNT)
    value = make(load(kernel_param(1, COUNT, U32), i))
    body = UOp(Op.SINK, store(kernel_param(0, COUNT, U32), i, value))
    return program(body, *(argument(slot, COUNT, U32) for slot in INPUTS))


def text_op(text: str) -> UOp:
    return kernel(lambda x: UOp(Op.CUSTOM, x, x, arg=CustomArg(text, U32)))


def instruction(name: str) -> UOp:
    return kernel(lambda x: UOp(Op.INS, x, x, arg=InsArg(name, U32)))


def by_three(op: Op, x: UOp) -> UOp:
    return UOp(op, x, const(3, U32))


def rendered(target: str = "opencl") -> UOp:
    return lower(kernel(partial(by_three, Op.ADD)), "render", target)


def with_parts(source: Callable[[str], str] = str, data: bytes = b"") -> UOp:
    """A rendered program with another SOURCE, or with bytes in its BINARY."""
    root = rendered()
    (body,) = kernels(root)
    linear, text, _ = body.src
    other = UOp(Op.SOURCE, arg=SourceArg(source(arg_of(text, SourceArg).text)))
    return root.substitute(
        {body: UOp(Op.PROGRAM, linear, other, UOp(Op.BINARY, arg=BinaryArg(data)))}
    )


def written(path: Path, root: UOp) -> Path:
    path.write_text(print_file(UopFile((FileCase(root=root, inputs=INPUTS),))))
    return path


NATIVE = {
    "a BINARY of 4 bytes": with_parts(data=b"code"),
    "a SOURCE that uop does not render of its LINEAR": with_parts(lambda text: text + "\n"),
    "the CUSTOM 'max({0},{1})', which is not registered": text_op("max({0},{1})"),
    "the INS 'rdtsc', which is not registered": instruction("rdtsc"),
}
OURS = {
    "plain": kernel(lambda x: x),
    "custom": text_op(next(iter(CUSTOM))),
    "instruction": instruction("mul_hi"),
    **{name: rendered(name) for name in TARGETS},
}


@pytest.mark.parametrize("name", OURS)
def test_what_uop_knows_or_renders_is_not_native(uop: Any, tmp_path: Path, name: str) -> None:
    assert not is_native(OURS[name])
    assert uop("run", written(tmp_path / "a.uop", OURS[name])).code == Exit.OK


def test_every_registered_instruction_is_ours() -> None:
    assert not any(map(is_native, map(instruction, INSTRUCTIONS)))


@pytest.mark.parametrize("found", NATIVE)
def test_native_code_is_named_and_does_not_run(uop: Any, tmp_path: Path, found: str) -> None:
    path = written(tmp_path / "a.uop", NATIVE[found])
    outcome = uop("run", path, "--backend", "no-such:module")
    assert outcome.code == Exit.USAGE
    place, _, said = outcome.err.removeprefix("error: ").partition(": ")
    assert place.rpartition(":")[0] == str(path)
    assert said == f"expected a program without native code, or --native; found {found}\n"


def test_a_source_of_another_program_is_native() -> None:
    """It is what uop renders, of another LINEAR."""
    (body,) = kernels(lower(kernel(lambda x: UOp(Op.MUL, x, x)), "render", "opencl"))
    assert is_native(with_parts(lambda _: arg_of(body.src[1], SourceArg).text))


def test_a_program_that_no_call_runs_is_native() -> None:
    (body,) = kernels(rendered())
    assert is_native(body)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file of native code, as each command that runs files takes it."""
    root = NATIVE["the CUSTOM 'max({0},{1})', which is not registered"]
    path = written(tmp_path / "a.uop", root)
    (tmp_path / "cases").mkdir()
    shutil.copy(path, tmp_path / "cases")
    (tmp_path / "corpus").mkdir()
    name = hashlib.sha256(path.read_bytes()).hexdigest()
    shutil.copy(path, tmp_path / "corpus" / f"{name}.uop")
    known = {"signature": "result ADD int32", "reason": "a reason", "repro": "a.uop"}
    rows = "\n".join(f"{key} = {json.dumps(value)}" for key, value in known.items())
    (tmp_path / "known.toml").write_text(f"[[known]]\n{rows}\n")
    return tmp_path


ONE_OP = ("--op", "ADD", "--dtype", "int32", "--examples", "1", "-n", "1")
RUNNING = [
    ("run", "a.uop"),
    ("run", "a.uop", "--backend", "interpreter"),
    ("time", "a.uop"),
    ("compile", "a.uop", "--check"),
    ("compile", "a.uop", "--beam", "1"),
    ("view", "a.uop"),
    ("replay", "a.uop", "interpreter"),
    ("replay", "cases", "interpreter"),
    ("conform", "interpreter", "--cases", "cases"),
    ("conform", "interpreter", "--known", "known.toml", *ONE_OP),
    ("conform", "interpreter", "--cases", "cases", "--in-process"),
    ("explain", "cases/a.uop/case", "--cases", "cases"),
    ("report", "a.uop", "interpreter"),
    ("known", "migrate", "interpreter", "--known", "known.toml"),
    ("fuzz", "interpreter", "--known", "known.toml", "--time", "3s", "-n", "1"),
]


@pytest.mark.parametrize("words", RUNNING, ids=" ".join)
def test_every_command_that_runs_a_file_refuses_native_code(
    uop: Any, folder: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    outcome = uop(*words)
    assert "expected a program without native code, or --native" in outcome.err
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (Exit.USAGE, "", 1)


READING = [
    ("compile", "a.uop"),
    ("compile", "a.uop", "--stage", "linearize"),
    ("replay", "a.uop", "--emit-requests"),
    ("replay", "a.uop", "--emit-python"),
]


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_reading_needs_no_option(
    uop: Any, folder: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    outcome = uop(*words)
    assert (outcome.code, outcome.err) == (Exit.OK, "")


def test_a_corpus_leaves_it_alone(uop: Any, folder: Path) -> None:
    (path,) = (folder / "corpus").iterdir()
    for words in (
        ("minimize", folder / "corpus"),
        ("merge", folder / "corpus", "--output", folder / "new"),
    ):
        outcome = uop("corpus", *words)
        assert f"left alone: {path}: " in outcome.err
        assert "or --native; found the CUSTOM" in outcome.err
    assert len(Corpus.read(folder / "corpus", native=True).programs) == 1


def test_a_case_to_be_rejected_does_not_run(uop: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.uop"
    path.write_text(
        '%0 = PARAM [] {slot=0, dtype=uint32}\n%1 = CUSTOM %0 {fmt="f({0})", dtype=uint32}\n'
        "invalid ADD.arity\n%2 = ADD %1\n"
    )
    assert uop("replay", path, "interpreter").code == Exit.OK


@pytest.mark.slow
def test_a_report_that_names_code_as_its_backend_needs_the_option_too(
    uop: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert uop("conform", "interpreter", *ONE_OP, "--json", "report.json").code == Exit.OK
    report = json.loads((tmp_path / "report.json").read_text())
    report["options"]["backend"] = f"command:touch {tmp_path / 'owned'}"
    (tmp_path / "report.json").write_text(json.dumps(report))
    outcome = uop("replay", "report.json")
    assert outcome.code == Exit.USAGE
    assert "report.json: expected a backend that `uop backends` lists" in outcome.err
    assert uop("replay", "report.json", "interpreter").code == Exit.OK
    assert not (tmp_path / "owned").exists()
    uop("replay", "report.json", "--native")
    assert (tmp_path / "owned").exists()


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a compiler for cuda-host")
def test_with_the_option_it_runs(uop: Any, tmp_path: Path) -> None:
    """The code is that of another kernel, which shows in the result."""
    device = open_device(TARGETS["cuda-host"])
    plus, times = (compile(kernel(partial(by_three, op)), "cuda-host") for op in (Op.ADD, Op.MUL))
    filled, (other,) = plus.with_binaries(device), kernels(times.with_binaries(device))
    (body,) = kernels(filled)
    own, source = (arg_of(b.src[1], SourceArg).text for b in (body, other))
    code = unpack(arg_of(other.src[2], BinaryArg).data, source)
    data = replace(code, source=digest(own.encode())).pack()
    swapped = UOp(Op.PROGRAM, *body.src[:2], UOp(Op.BINARY, arg=BinaryArg(data)))
    path = written(tmp_path / "a.uop", filled.substitute({body: swapped}))
    refused = uop("run", path, "--backend", "cuda-host")
    assert "or --native; found a BINARY of" in refused.err
    outcome = uop("run", path, "--backend", "cuda-host", "--native")
    assert outcome.out == "0 : uint32[5] = [0, 3, 6, 9, 12]\n"
    assert uop("run", path, "--native").out == "0 : uint32[5] = [3, 4, 5, 6, 7]\n"
