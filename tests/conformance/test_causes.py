"""Causes: what one fix would mend is one cause, and every failing case is mapped to its cause."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from uop.conformance.backends import MUTANT
from uop.conformance.backends.attempt import attempt
from uop.conformance.backends.interpreter import InterpreterBackend, interpret
from uop.conformance.judging.compare import Symptom
from uop.conformance.judging.judge import Judge
from uop.conformance.protocol.types import Outcome, Outputs, Problem, ProblemKind, Program
from uop.conformance.report.model import Failure, Report
from uop.conformance.report.text import failure_lines
from uop.conformance.run.causes import CauseSearch
from uop.conformance.run.conform import conform
from uop.conformance.run.options import Options
from uop.conformance.run.pool import Pool, Task
from uop.conformance.shrink.explain import Explained, Failing, decomposed
from uop.conformance.shrink.pattern import converted, matches, transplanted
from uop.conformance.shrink.probe import Seen
from uop.conformance.shrink.reduce import Candidate
from uop.conformance.shrink.repro import explained_by, find_cause
from uop.conformance.suite.case import Batch, Case, CaseId
from uop.conformance.workers.transport import Local
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.args import BufferArg, DTypeArg, FlipArg, ReduceArg
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import PassError
from uop.spec.graph import slots_of
from uop.spec.latitude import STRICT
from uop.spec.ops.names import Op
from uop.spec.text.program import parse, print_program
from uop.spec.uop import UOp, const, dims, param

I32 = dtypes.int32


def run(folder: Path, mutants: str, *ops: str, **options: object) -> Report:
    """Judge the interpreter with seeded faults on level op."""
    fields = {"levels": ("op",), "ops": ops, "effort": "smoke", "workers": 1, **options}
    return conform(Options(MUTANT + mutants, output=folder, **fields))  # type: ignore[arg-type]


def test_each_fault_is_one_cause_of_all_its_cases(tmp_path: Path) -> None:
    report = run(tmp_path, "pads-that-start-at-zero,flags-from-words", "PAD", "FLIP", "GROUP")
    assert {cause.ops for cause in report.failures} == {("PAD",), ("FLIP",)}
    explained = [id for cause in report.failures for id in cause.cases]
    assert len(explained) == len(set(explained)) == report.summary.failed
    assert not report.unexplained
    pad, flip = sorted(report.failures, key=lambda cause: cause.ops, reverse=True)
    assert {place[1] for place in pad.cells} >= {"PAD"}
    assert {place[1] for place in flip.cells} >= {"FLIP", "GROUP"}
    assert len({place[2] for place in pad.cells}) > 3


def test_a_refusal_and_a_wrong_value_of_one_fault_are_one_cause(tmp_path: Path) -> None:
    """A quotient of constants is refused, as it leaves its interval; others are wrong."""
    report = run(tmp_path, "quotients-of-unlike-signs", "IDIV", seed=0)
    (cause,) = report.failures
    assert len(cause.cases) == report.summary.failed
    assert "op/IDIV/int32/hand-constants/0@2" in cause.cases


@pytest.mark.slow
def test_the_case_of_a_cause_does_not_depend_on_the_order_of_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_order, answers = run(tmp_path, "truth-above-zero", "CAST"), Pool.answers

    def reversed_answers(
        self: Pool, tasks: Iterator[Task[Any]], deadline: float | None = None
    ) -> Iterator[Any]:
        return reversed(list(answers(self, tasks, deadline)))

    monkeypatch.setattr(Pool, "answers", reversed_answers)
    backwards = run(tmp_path, "truth-above-zero", "CAST")
    assert in_order.failures
    assert [(f.id, f.text) for f in backwards.failures] == [
        (f.id, f.text) for f in in_order.failures
    ]


def test_two_faults_of_one_op_are_told_apart_by_what_fails(tmp_path: Path) -> None:
    report = run(tmp_path, "nan-equals-itself,zeros-differ", "CMPNE", dtypes=("float32",))
    first, second = sorted(cause.signature for cause in report.failures)
    assert second == f"{first} #2"
    values = sorted(cause.values[0].inputs for cause in report.failures)
    assert len(values) == 2
    assert any("nan" in text for text in values[1])
    assert set(values[0]) == {"0x0p+0", "-0x0p+0"}


def test_what_was_not_explained_in_time_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CauseSearch, "run", lambda search, failed: None)
    report = run(tmp_path, "pads-that-start-at-zero", "PAD", dtypes=("int8",))
    assert len(report.unexplained) == report.summary.failed > 0
    # Without any cause one failure stands for all, unshrunk.
    (failure,) = report.failures
    assert failure.id in report.unexplained
    assert "not yet explained" in failure_lines(report)[-1]


class Rewriting(InterpreterBackend):
    """A backend that rewrites each program, node by node, before it runs it."""

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        return [attempt(partial(self._run, program)) for program in programs]

    def _run(self, program: Program) -> Outcome:
        return interpret(Program(self._text(program.text), program.batches))

    def _text(self, text: str) -> str:
        root = parse(text)
        new: dict[UOp, UOp] = {}
        for u in root.toposort():
            new[u] = u.with_src(new[s] for s in u.src)
            self.rewrite(u, new)
        return print_program(new[root])

    def rewrite(self, u: UOp, new: dict[UOp, UOp]) -> None:
        """Enter what stands for a node instead."""
        raise NotImplementedError


class Folding(Rewriting):
    """Two faults: x + c < d moves c without a wrap, and a sum of two constants is one too many."""

    def rewrite(self, u: UOp, new: dict[UOp, UOp]) -> None:
        if u.op is Op.CMPLT and u.src[0].op is Op.ADD and u.src[0].src[1].op is Op.CONST:
            (x, c), d = u.src[0].src, u.src[1]
            new[u] = UOp(Op.CMPLT, new[x], UOp(Op.SUB, new[d], new[c]))
        if u.op is Op.ADD and all(s.op is Op.CONST for s in u.src):
            new[u] = UOp(Op.ADD, new[u], const(1, u.dtype))


def test_a_repro_keeps_its_inputs_and_so_its_fault() -> None:
    x = param(0, (2,), dtypes.int8)
    root = UOp(Op.CMPLT, UOp(Op.ADD, x, const(100, dtypes.int8)), const(50, dtypes.int8))
    cause = shrunk(root, np.array([100, 1], np.int8))
    assert cause.ops == ("ADD", "CMPLT")
    assert "PARAM" in cause.text


def test_a_cause_explains_another_dtype_and_shape_but_no_other_program() -> None:
    def compared(dtype: DType, limit: int, shape: tuple[int, ...] = (2,)) -> UOp:
        x = param(0, shape, dtype)
        return UOp(Op.CMPLT, UOp(Op.ADD, x, const(100, dtype)), const(limit, dtype))

    cause = shrunk(compared(dtypes.int8, 50), np.array([100, 1], np.int8))
    other = compared(dtypes.uint8, 50, (1, 2))
    found = explained(other, np.array([[200, 1]], np.uint8), cause)
    assert found.cause == 0
    assert not found.is_exact
    y = UOp(Op.ADD, const(1, I32), const(2, I32))
    of_constants = UOp(Op.MUL, param(0, (2,), I32), y)
    assert explained(of_constants, np.array([1, 2], np.int32), cause).cause is None


def test_each_wrong_output_needs_an_explanation() -> None:
    x = param(0, (2,), dtypes.int8)
    moved = UOp(Op.CMPLT, UOp(Op.ADD, x, const(100, dtypes.int8)), const(50, dtypes.int8))
    summed = UOp(Op.MUL, x, UOp(Op.ADD, const(1, dtypes.int8), const(2, dtypes.int8)))
    data = np.array([100, 1], np.int8)
    program = UOp(Op.TUPLE, UOp(Op.NEG, x), moved, summed)
    assert failing(program, data).failure.wrong == (1, 2)
    of_moved, of_summed = shrunk(moved, data), shrunk(summed, data)
    one = explained(program, data, of_moved)
    assert (one.cause, one.left) == (None, (2,))
    assert one.rest is not None
    assert one.rest[0].root is summed
    assert explained(program, data, of_moved, of_summed).cause == 0
    assert explained(program, data, of_summed).left == (1,)


class Contracting(Rewriting):
    """A sum with a product is rounded once: it is computed in float64."""

    def rewrite(self, u: UOp, new: dict[UOp, UOp]) -> None:
        if u.op is Op.ADD and u.src[0].op is Op.MUL:
            x, y, z = (_cast(new[s], dtypes.float64) for s in (*u.src[0].src, u.src[1]))
            new[u] = _cast(UOp(Op.ADD, UOp(Op.MUL, x, y), z), u.dtype)


def _cast(u: UOp, dtype: DType) -> UOp:
    return UOp(Op.CAST, u, arg=DTypeArg(dtype))


def test_an_inaccurate_result_is_one_cause_in_two_dtypes() -> None:
    def contracted(dtype: DType) -> UOp:
        x = param(0, (), dtype)
        return UOp(Op.ADD, UOp(Op.MUL, x, x), x)

    backend = Contracting()
    cause = shrunk(contracted(dtypes.float32), np.array(1.1, np.float32), backend)
    assert cause.label == Symptom.ULP
    half = contracted(dtypes.float16)
    found = explained(half, np.array(1.3, np.float16), cause, backend=backend)
    assert found.cause == 0
    assert not found.is_exact


class Checking(Rewriting):
    """Two faults: float constants are refused, and a quotient of integers is one too many."""

    def rewrite(self, u: UOp, new: dict[UOp, UOp]) -> None:
        if u.op is Op.CONST and u.dtype.is_float:
            raise PassError("constants of floats are not done")
        if u.op is Op.IDIV:
            new[u] = UOp(Op.ADD, new[u], const(1, u.dtype))


def test_a_refusal_for_another_reason_is_not_explained_by_a_wrong_part() -> None:
    x = param(0, (2,), I32)
    quotient = UOp(Op.IDIV, x, x)
    of_float = UOp(Op.ADD, _cast(quotient, dtypes.float32), const(1.0, dtypes.float32))
    data, backend = np.array([5, 7], np.int32), Checking()
    wrong, refused = (shrunk(root, data, backend) for root in (quotient, of_float))
    assert (wrong.kind, refused.kind) == ("result", "refused")
    assert explained(of_float, data, wrong, backend=backend).cause is None
    assert explained(quotient, data, refused, backend=backend).cause is None


class Adding(InterpreterBackend):
    """Constants alone, and what is flipped, are one too large."""

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        return [attempt(partial(self._run, program)) for program in programs]

    def _run(self, program: Program) -> Outcome:
        root = parse(program.text)
        if root.op in (Op.CONST, Op.FLIP):
            root = UOp(Op.ADD, root, const(1, root.dtype))
        return interpret(Program(print_program(root), program.batches))


def test_a_wrong_constant_does_not_explain_a_program_that_has_it_as_a_size() -> None:
    flipped = UOp(Op.FLIP, param(0, (3,), I32), arg=FlipArg((True,)))
    data, backend = np.array([5, 7, 2], np.int32), Adding()
    for dtype in (dtypes.index, I32):
        wrong = shrunk(const(3, dtype), data, backend)
        assert explained(flipped, data, wrong, backend=backend).cause is None


class Finite(InterpreterBackend):
    """Infinities are 1 where they go in or come out; squares of more than `most` are 0."""

    def __init__(self, most: float = np.inf) -> None:
        super().__init__()
        self.most = most

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        return [attempt(partial(self._run, program)) for program in programs]

    def _run(self, program: Program) -> Outcome:
        batches = tuple({k: _finite(a) for k, a in b.items()} for b in program.batches)
        found = interpret(Program(program.text, batches))
        if not isinstance(found, Outputs):
            return found
        if "MUL" in program.text:
            found = Outputs(tuple(tuple(map(self._wrong, b)) for b in found.batches))
        return Outputs(tuple(tuple(map(_finite, b)) for b in found.batches))

    def _wrong(self, a: Array) -> Array:
        return np.where(a > self.most, np.zeros_like(a), a)


def _finite(a: Array) -> Array:
    return np.where(np.isinf(a), np.ones_like(a), a)


def test_a_value_that_is_lost_on_its_way_explains_what_computes_it() -> None:
    x, backend = param(0, (2,), dtypes.float32), Finite()
    lost = shrunk(x, np.array([np.inf, 2], np.float32), backend)
    assert lost.ops == ("PARAM",)
    square, data = UOp(Op.MUL, x, x), np.array([2.0**64, 2], np.float32)
    assert explained(square, data, lost, backend=backend).cause == 0
    total = UOp(Op.REDUCE, x, arg=ReduceArg(Op.ADD, (0,)))
    assert explained(total, np.array([np.inf, 2], np.float32), lost, backend=backend).cause is None
    wrong = Finite(most=3)
    assert explained(square, data, lost, backend=wrong).cause is None


class Ending(InterpreterBackend):
    """Divisions of more than 5 end it."""

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        ends = Problem(ProblemKind.CRASH, "ended")
        large = [any((a > 5).any() for b in p.batches for a in b.values()) for p in programs]
        return [ends if n else interpret(p) for p, n in zip(programs, large, strict=True)]


def test_only_what_ran_is_remembered() -> None:
    def halved(dtype: DType) -> UOp:
        return UOp(Op.IDIV, param(0, (), dtype), const(2, dtype))

    backend, seen = Ending(), Seen()
    causes = [shrunk(halved(I32), np.array(n, np.int32), backend) for n in (7, 9)]
    one = failing(halved(dtypes.int16), np.array(7, np.int16), backend)
    found = explained_by(Judge(Local(backend), STRICT), one, causes, seen)
    assert found.cause == 0
    # Each failed; what was left out after the first would be None.
    assert seen
    assert None not in seen.values()


def shrunk(root: UOp, data: Array, backend: InterpreterBackend | None = None) -> Failure:
    judge = Judge(Local(backend or Folding()), STRICT)
    return find_cause(judge, failing(root, data, backend))


def explained(
    root: UOp, data: Array, *causes: Failure, backend: InterpreterBackend | None = None
) -> Explained:
    judge = Judge(Local(backend or Folding()), STRICT)
    return explained_by(judge, failing(root, data, backend), causes, {})


def failing(root: UOp, data: Array, backend: InterpreterBackend | None = None) -> Failing:
    case = Case(
        CaseId("graph", "MIXED", "int32", "test", 0),
        root,
        (Batch({0: data} if slots_of(root) else {}),),
    )
    (verdict,) = Judge(Local(backend or Folding()), STRICT).judge([case])
    assert verdict.status.is_failure
    assert verdict.failure is not None
    return Failing(case, verdict.failure)


def test_a_pattern_is_found_with_its_constants_and_ops() -> None:
    x = param(0, (), I32)
    program = UOp(Op.MUL, UOp(Op.ADD, param(0, (4,), I32), const(3, I32)), const(2, I32))
    assert len(list(matches(UOp(Op.ADD, x, const(7, I32)), program.toposort()))) == 1
    assert len(list(matches(UOp(Op.ADD, x, param(1, (), I32)), program.toposort()))) == 1
    assert not list(matches(UOp(Op.ADD, const(7, I32), const(7, I32)), program.toposort()))
    assert not list(matches(UOp(Op.MAX, x, x), program.toposort()))


def test_what_a_buffer_holds_stays_in_another_dtype() -> None:
    buffer = UOp(Op.BUFFER, dims((2,)), arg=BufferArg(0, I32))
    repro = Candidate(UOp(Op.ADD, buffer, param(1, (2,), I32)), {0: np.zeros(2), 1: np.ones(2)})
    (match,) = matches(repro.root, repro.root.toposort())
    assert [image.inputs.keys() for image in transplanted(repro, match)] == [{0, 1}] * 2


@pytest.mark.parametrize(
    ("value", "old", "new", "same", "role"),
    [
        (-7, dtypes.int8, dtypes.int32, -7, -7),
        (127, dtypes.int8, dtypes.int32, 127, 2**31 - 1),
        (-128, dtypes.int8, dtypes.int16, -128, -(2**15)),
        (200, dtypes.uint8, dtypes.uint16, 200, 200 << 8),
        (7, dtypes.uint8, dtypes.uint32, 7, 31),
        (33, dtypes.int32, dtypes.int8, 33, 9),
        (255, dtypes.uint8, dtypes.int8, -1, 127),
        (1.5, dtypes.float32, dtypes.float64, 1.5, 1.0 + 2.0**-30),
        (np.inf, dtypes.float32, dtypes.float16, np.inf, np.inf),
    ],
)
def test_values_of_another_dtype(
    value: float, old: DType, new: DType, same: float, role: float
) -> None:
    data = np.array(value, np_dtype(old))
    assert converted(data, old, new, by_role=False) == same
    assert converted(data, old, new, by_role=True) == role


def test_decomposed_ops_become_primitive() -> None:
    x = param(0, (), dtypes.float32)
    ops = {u.op for u in decomposed(UOp(Op.MULACC, x, x, x)).toposort()}
    assert ops - {Op.STACK} == {Op.PARAM, Op.MUL, Op.ADD}
