"""Executables judged by the suite: forms, editions, files, offers; messages have a schema."""

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from uop.conformance.judging.judge import Judge
from uop.conformance.judging.lowering import submission_of, unsupported
from uop.conformance.judging.verdict import Status, Verdict
from uop.conformance.protocol.messages import Input, Request, run_request
from uop.conformance.protocol.types import Hello, Program
from uop.conformance.report.model import Conclusion
from uop.conformance.report.text import summary
from uop.conformance.run.conform import conform
from uop.conformance.run.options import Options
from uop.conformance.shrink.explain import Failing
from uop.conformance.shrink.repro import find_cause
from uop.conformance.suite.case import Case, CaseId, InvalidCase
from uop.conformance.suite.generate import case_by_id, group_of, groups
from uop.conformance.suite.levels.nodes import buffer
from uop.conformance.workers.command import Command
from uop.conformance.workers.processes import Workplace
from uop.spec.args import GetAddrArg, ReduceArg
from uop.spec.dtype import dtypes
from uop.spec.errors import BackendError
from uop.spec.graph import kind_of
from uop.spec.latitude import STRICT
from uop.spec.ops.names import Op
from uop.spec.text.program import print_program
from uop.spec.uop import UOp, param

HERE = Path(__file__).parent
SCHEMA = json.loads(
    files("uop.conformance.protocol").joinpath("uop-worker-protocol-1.schema.json").read_text()
)


def reference(fault: str = "", **hello: Any) -> str:
    chosen = json.dumps({"hello": hello, "fault": fault})
    return "command:" + shlex.join(
        [sys.executable, "-P", str(HERE / "reference_worker.py"), chosen]
    )


@contextmanager
def judge(name: str, folder: Path) -> Iterator[Judge]:
    worker = Command(name, Workplace(folder))
    try:
        yield Judge(worker, STRICT)
    finally:
        worker.close()


def some_cases() -> list[Case]:
    """The first case of some ops and of every other level that has programs to run."""
    chosen = [g for g in groups("op") if g.op in ("ADD", "CAST", "PAD", "REDUCE", "TUPLE", "MAX")]
    for level in ("property", "function", "graph"):
        chosen += groups(level)[:6]
    found = (g.case(0, 0) for g in chosen[::25] if g.counts[0])
    return [case for case in found if isinstance(case, Case)]


def failures(verdicts: list[Verdict]) -> list[str]:
    return [f"{v.id}: {v.failure.message}" for v in verdicts if v.failure is not None]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "hello",
    [
        {"forms": ["tensor"]},
        {"forms": ["kernel"]},
        {"forms": ["linear"]},
        {"editions": ["2026-05", "core"]},
        {"editions": ["2026-07", "core"]},
        {"editions": ["bestiary"]},
        # Where a BUFFER is flat, so are its arrays.
        *(
            {"forms": [form], "editions": [edition], "offers": ["props"]}
            for form in ("kernel", "linear")
            for edition in ("2026-05", "bestiary")
        ),
        {"limits": {"inline_bytes": 16}},
    ],
    ids=str,
)
def test_the_reference_conforms_in_every_form_and_edition(
    tmp_path: Path, hello: dict[str, Any]
) -> None:
    with judge(reference(**hello), tmp_path) as judged:
        verdicts = judged.judge(some_cases())
    assert failures(verdicts) == []
    passed = sum(v.status is Status.PASSED for v in verdicts)
    assert passed > 0.8 * len(verdicts)
    assert list(tmp_path.glob("*put-*")) == []


def test_messages_have_the_schema_of_the_protocol(tmp_path: Path) -> None:
    schema = jsonschema.Draft202012Validator(SCHEMA)
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    offers = ["check", "props", "stages", "source"]
    name = reference(offers=offers, limits={"inline_bytes": 4})
    spoken: list[Any] = []
    with judge(name, tmp_path) as judged:
        worker = judged.session
        assert isinstance(worker, Command)
        ask = worker.process.ask

        def listen(request: bytes, *rest: Any, **named: Any) -> Any:
            reply = ask(request, *rest, **named)
            spoken.extend([json.loads(request), reply])
            return reply

        worker.process.ask = listen  # type: ignore[method-assign]
        case = some_cases()[0]
        invalid = next(c for g in groups("invalid") if isinstance(c := g.case(0, 0), InvalidCase))
        judged.judge([case, invalid])
        judged.explain(case)
        worker.ask(Request(999, "hello", 1))
        worker.ask(Request(1000, "later"))
    dos = [message["do"] for message in spoken[::2]]
    assert {*dos} == {"run", "check", "hello", "later", *offers}
    for message in spoken:
        if message.get("do") != "later":
            schema.validate(message)


def test_what_the_schema_forbids() -> None:
    schema = jsonschema.Draft202012Validator(SCHEMA)
    for wrong in (
        {"id": 1},
        {"id": "1", "outputs": []},
        {"id": 1, "outputs": [[{"dtype": "float32", "shape": [1], "data": "0"}]]},
        {"id": 1, "outputs": [[{"dtype": "float33", "shape": [1], "data": "00"}]]},
        {"id": 1, "error": {"class": "tired", "message": ""}},
        {"id": 1, "protocol": 2, "name": "a", "version": "1", "ops": [], "dtypes": []},
    ):
        assert not schema.is_valid(wrong), wrong


def test_a_line_is_ascii_and_one_line() -> None:
    a = param(0, (1,), dtypes.float32)
    program = Program(print_program(UOp(Op.ADD, a, a)), ({0: np.zeros(1, np.float32)},))
    hello = Hello("any", "1", "", frozenset(), frozenset())
    text = run_request(3, program, hello).line
    assert text.isascii()
    assert text.count(b"\n") == 1
    assert text.endswith(b"\n")


def test_an_input_has_the_dtype_of_its_node() -> None:
    same = UOp(Op.CONTIGUOUS, param(0, (1,), dtypes.index))
    program = Program(print_program(same), ({0: np.array([-2], np.int64)},))
    hello = Hello("any", "1", "", frozenset(), frozenset())
    assert run_request(1, program, hello).inputs == ({"0": Input("index", (1,), "fe" + "ff" * 7)},)


def test_a_wrong_stage_is_named_and_the_source_is_in_the_repro(tmp_path: Path) -> None:
    name = reference("ADD is MUL", offers=["stages", "source"])
    case = first("op", "ADD", "float32")
    with judge(name, tmp_path) as judged:
        (verdict,) = judged.judge([case])
        assert verdict.failure is not None
        finding = find_cause(judged, Failing(case, verdict.failure))
    assert "its stage fuse leaves a program that gives something else" in finding.message
    assert ";   |   return 0;" in finding.text


def test_stages_that_are_right_say_so(tmp_path: Path) -> None:
    with judge(reference(offers=["stages"]), tmp_path) as judged:
        told = judged.explain(first("op", "ADD", "float32"))
    assert told == "what its stages leave is right: the fault comes after them"


def test_arrays_that_cannot_be_written_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with judge(reference(limits={"inline_bytes": 1}), tmp_path) as judged:
        monkeypatch.setattr(Path, "write_bytes", full)
        with pytest.raises(BackendError, match="no files for its arrays: No space left on device"):
            judged.judge([first("op", "ADD", "float32")])


def test_a_wrong_property_is_a_failure(tmp_path: Path) -> None:
    case = first("op", "ADD", "float32")
    with judge(reference("shape of the root", offers=["props"]), tmp_path) as judged:
        (verdict,) = judged.judge([case])
    assert verdict.failure is not None
    assert "property: node " in verdict.failure.message
    assert "ADD: shape: expected [" in verdict.failure.message


@pytest.mark.parametrize(
    ("fault", "status"), [("", Status.PASSED), ("all is valid", Status.FAILED)]
)
def test_a_worker_that_offers_to_check_must_reject(
    tmp_path: Path, fault: str, status: Status
) -> None:
    case = next(g.case(0, 0) for g in groups("invalid") if g.op == "ADD" and g.counts[0])
    with judge(reference(fault, offers=["check"]), tmp_path) as judged:
        (verdict,) = judged.judge([case])
    assert verdict.status is status


def test_a_worker_that_does_not_check_is_sent_no_invalid_program(tmp_path: Path) -> None:
    case = next(g.case(0, 0) for g in groups("invalid") if g.op == "ADD" and g.counts[0])
    with judge(reference(), tmp_path) as judged:
        (verdict,) = judged.judge([case])
    assert verdict.status is Status.SKIPPED
    assert "does not check programs" in verdict.reason


def test_only_what_a_worker_lists_is_sent() -> None:
    little = Hello("little", "1", "", frozenset({"PARAM", "ADD"}), frozenset({"float32"}))
    x, y = (param(slot, (2,), dtypes.float32) for slot in (0, 1))
    total = UOp(Op.ADD, x, y)
    assert unsupported(total, little) == ""
    assert "MUL" in unsupported(UOp(Op.MUL, total, y), little)
    folding = replace(little, ops=little.ops | {"REDUCE"})
    assert unsupported(UOp(Op.REDUCE, x, arg=ReduceArg(Op.ADD, (0,))), folding) == ""
    assert "MAX" in unsupported(UOp(Op.REDUCE, x, arg=ReduceArg(Op.MAX, (0,))), folding)
    i = param(0, (2,), dtypes.index)
    assert "index" in unsupported(UOp(Op.ADD, i, i), little)
    far = UOp(Op.ADD, param(0, (2,), dtypes.float32, device="A"), param(1, (2,), dtypes.float32))
    one = replace(little, limits=replace(little.limits, devices=0))
    assert "devices" in unsupported(far, one)
    small = replace(little, limits=replace(little.limits, elements=1))
    assert "at most 1 elements" in unsupported(total, small)


def test_a_program_that_cannot_be_lowered_is_skipped_with_the_reason() -> None:
    case = first("device", "MIXED", None)
    address = UOp(Op.GETADDR, buffer(7, (4,), dtypes.int32), arg=GetAddrArg("D0"))
    case = replace(case, root=UOp(Op.TUPLE, case.root, address))
    kernels = Hello(
        "k", "1", "", frozenset(Op.__members__), frozenset({"float32"}), forms=frozenset({"kernel"})
    )
    assert kind_of(case.root) == "tensor"
    assert "cannot be lowered to kernel form" in submission_of(case, kernels).reason


def test_a_list_of_instructions_is_no_kernel_as_a_graph() -> None:
    """So it is not lowered, and the reason is about the backend, not about the compiler."""
    case = first("kernel", "BARRIER", "int32")
    assert kind_of(case.root) == "linear"
    hello = Hello(
        "k", "1", "", frozenset(Op.__members__), frozenset({"int32"}), forms=frozenset({"kernel"})
    )
    assert submission_of(case, hello).reason == "k takes no linear programs"


def test_a_declared_profile_is_what_a_worker_is_judged_by(tmp_path: Path) -> None:
    options = Options(
        reference(profile="max_nan=number"),
        cases=(str(first("op", "ADD", "int8").id),),
        workers=1,
        output=tmp_path / "failures",
    )
    assert conform(options).profile == "max_nan=number"


@pytest.mark.slow
def test_a_hang_ends_at_the_timeout(tmp_path: Path) -> None:
    name = shlex.join([sys.executable, "-I", "-S", str(HERE / "worker_for_tests.py"), "silent"])
    options = Options(
        f"command:{name}",
        cases=(str(first("op", "MUL", "float32").id),),
        workers=1,
        timeout=0.6,
        profile="strict",
        output=tmp_path / "failures",
    )
    report = conform(options)
    assert report.failures[0].label == "hang"
    assert "no reply within 0.6 s" in report.failures[0].message
    # Where its choices are to be observed first, that is where it hangs.
    observed = conform(replace(options, profile=""))
    assert observed.conclusion is Conclusion.INCONCLUSIVE
    assert "it hangs on " in observed.summary.open_because
    assert summary(observed, 60)[-1] == f"next: uop worker check --timeout 0.6 -- {name}"


def first(level: str, op: str, dtype: str | None) -> Case:
    group = next(
        g for g in groups(level) if g.op == op and dtype in (None, g.dtype) and g.counts[0]
    )
    case = case_by_id(str(CaseId(level, op, group.dtype, group.name, 0)))
    assert isinstance(case, Case)
    assert group_of(case.id) is group
    return case
