"""Six faults put in one at a time: the suite must find each of them and make it small."""

import gc
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from uop.compiler import pipeline
from uop.compiler.stages.rangeify import lower
from uop.compiler.stages.render import statements
from uop.compiler.stages.render.body import Body
from uop.compiler.targets import cstyle
from uop.compiler.targets.opencl import HEADER, OPENCL
from uop.conformance.backends.compiled import OpenCLBackend
from uop.conformance.backends.interpreter import InterpreterBackend
from uop.conformance.judging.judge import Judge
from uop.conformance.judging.verdict import Status
from uop.conformance.protocol.types import Backend, Hello, Outcome, Program
from uop.conformance.report.model import Failure
from uop.conformance.run.options import Options
from uop.conformance.run.selection import selected
from uop.conformance.shrink.explain import Failing
from uop.conformance.shrink.reduce import is_computing
from uop.conformance.shrink.repro import find_cause
from uop.conformance.suite.generate import case_by_id
from uop.conformance.workers.transport import Local
from uop.spec.dtype import dtypes
from uop.spec.latitude import STRICT
from uop.spec.ops.names import Op
from uop.spec.properties.interval import Interval
from uop.spec.registry import DECLARATIONS, Node
from uop.spec.text.uop_file import parse_file
from uop.spec.uop import UOp, index_const

pytestmark = pytest.mark.slow

Fault = Callable[[pytest.MonkeyPatch], None]
MOST_NODES = 3
CHUNK = 8
CPU = Path("/proc/cpuinfo")
FUSES = CPU.exists() and " fma " in CPU.read_text()


class WithFault:
    """A backend in this process in which the fault is there while it runs, and only then."""

    def __init__(self, backend: Backend, fault: Fault) -> None:
        self.backend, self.fault = backend, fault

    def hello(self) -> Hello:
        return self.backend.hello()

    def run(self, programs: Sequence[Program]) -> Sequence[Outcome]:
        with pytest.MonkeyPatch.context() as patch:
            self.fault(patch)
            return self.backend.run(programs)


def cmplt_true_on_nan(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(cstyle.SPELLINGS, Op.CMPLT, lambda node: f"!({node.args[0]} >= {node.args[1]})")


def uint8_addition_in_int(patch: pytest.MonkeyPatch) -> None:
    whole = statements._elementwise

    def faulty(body: Body, u: UOp) -> None:
        if u.op is not Op.ADD or u.dtype is not dtypes.uint8:
            whole(body, u)
            return
        name = f"t{body.count}"
        body.count += 1
        body.write(f"i32 {name} = (i32){body.of(u.src[0])} + (i32){body.of(u.src[1])};")
        body.name(u, name)

    patch.setattr(statements, "_elementwise", faulty)


def pad_offset_off_by_one(patch: pytest.MonkeyPatch) -> None:
    def faulty(lowering: lower.Lowering, e: lower.Element) -> lower.Steps:
        dims = zip(e.tensor.src[0].shape, e.tensor.shape, strict=True)
        padded = [axis for axis, (inner, outer) in enumerate(dims) if inner != outer][:1]
        steps = [index_const(int(axis in padded)) for axis in range(len(e.at))]
        at = tuple(lowering.alu(Op.ADD, *pair) for pair in zip(e.at, steps, strict=True))
        return lower.Lowering.pad_as_validity(lowering, e._replace(at=at))

    patch.setitem(lower.RULES, Op.PAD, faulty)  # type: ignore[arg-type]


def float16_unrounded_between_nodes(patch: pytest.MonkeyPatch) -> None:
    whole = statements._elementwise

    def faulty(body: Body, u: UOp) -> None:
        inner = u.src[0]
        widened = u.op is Op.CAST and u.dtype is dtypes.float32 and inner.op is Op.CAST
        if widened and inner.dtype is dtypes.float16 and inner.src[0].dtype is dtypes.float32:
            body.variable(u, body.of(inner.src[0]))
        else:
            whole(body, u)

    patch.setattr(statements, "_elementwise", faulty)


def mul_interval_without_wrap(patch: pytest.MonkeyPatch) -> None:
    declared = DECLARATIONS[Op.MUL]

    def faulty(u: Node) -> Interval | None:
        a, b = (s.min_max for s in u.src)
        if not u.dtype.is_int or a is None or b is None:
            return declared.min_max(u)
        corners = [int(x) * int(y) for x in (a.min, a.max) for y in (b.min, b.max)]
        return Interval(min(corners), max(corners))

    patch.setitem(DECLARATIONS, Op.MUL, replace(declared, min_max=faulty))


def nested_without_contraction_pragma(patch: pytest.MonkeyPatch) -> None:
    whole = statements._elementwise

    def nested(body: Body, u: UOp) -> None:
        if u.op is Op.ADD and u.dtype.is_float and u.src[0].op is Op.MUL:
            a, b = (body.of(s) for s in u.src[0].src)
            body.variable(u, f"{a} * {b} + {body.of(u.src[1])}")
        else:
            whole(body, u)

    patch.setattr(statements, "_elementwise", nested)
    header = HEADER.replace("#pragma OPENCL FP_CONTRACT OFF\n", "")
    assert header != HEADER
    target = replace(OPENCL, dialect=replace(OPENCL.dialect, header=header))
    patch.setitem(pipeline.TARGETS, "opencl", target)


def found(backend: Backend, options: Options) -> Failure:
    """The first failure among the cases, shrunk."""
    judge = Judge(Local(backend), STRICT)
    ids = iter(selected(options))
    while chunk := list(islice(ids, CHUNK)):
        cases = [case_by_id(str(id)) for id in chunk]
        for case, verdict in zip(cases, judge.judge(cases), strict=True):
            if verdict.status is Status.FAILED and verdict.failure is not None:
                return find_cause(judge, Failing(case, verdict.failure))
    raise AssertionError("the fault was not found")


def nodes(finding: Failure) -> int:
    (case,) = parse_file(finding.text).cases
    assert case.root is not None
    return sum(map(is_computing, case.root.toposort()))


OPS = Options("opencl", levels=("op",), effort="smoke")
GRAPHS = Options("opencl", levels=("graph",))


@pytest.mark.parametrize(
    ("fault", "where", "ops"),
    [
        (cmplt_true_on_nan, replace(OPS, ops=("CMPLT",)), {"CMPLT"}),
        (uint8_addition_in_int, replace(GRAPHS, dtypes=("uint8",)), {"ADD"}),
        (pad_offset_off_by_one, replace(OPS, ops=("PAD",)), {"PAD"}),
        (float16_unrounded_between_nodes, replace(GRAPHS, dtypes=("float16",)), set()),
        pytest.param(
            nested_without_contraction_pragma,
            replace(GRAPHS, dtypes=("float32",)),
            {"ADD", "MUL"},
            marks=pytest.mark.skipif(not FUSES, reason="this CPU has no fused multiply-add"),
        ),
    ],
)
@pytest.mark.usefixtures("opencl")
def test_a_fault_in_the_compiler_is_found_and_made_small(
    fault: Fault, where: Options, ops: set[str]
) -> None:
    finding = found(WithFault(OpenCLBackend(), fault), where)
    assert nodes(finding) <= MOST_NODES, finding.text
    assert ops <= set(finding.ops), finding.text


def test_a_wrong_interval_is_found_and_made_small() -> None:
    backend = WithFault(InterpreterBackend(), mul_interval_without_wrap)
    finding = found(backend, Options("interpreter", levels=("property", "graph")))
    gc.collect()
    assert nodes(finding) <= MOST_NODES, finding.text
    assert "MUL" in finding.ops
    assert "min_max" in finding.message
