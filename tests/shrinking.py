"""Faults of backends, and what a program that fails by them is shrunk to."""

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from uop.conformance.backends.attempt import attempt
from uop.conformance.backends.interpreter import InterpreterBackend, interpret
from uop.conformance.judging.judge import Judge
from uop.conformance.judging.verdict import Status
from uop.conformance.protocol.types import Outcome, Outputs, Program
from uop.conformance.report.model import Failure
from uop.conformance.shrink.explain import Failing
from uop.conformance.shrink.repro import find_cause
from uop.conformance.suite.case import Batch, Case, CaseId
from uop.conformance.workers.transport import Local
from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import Array, to_bits
from uop.spec.dtype import dtypes
from uop.spec.graph import slots_of
from uop.spec.latitude import STRICT
from uop.spec.ops.names import Op
from uop.spec.text.program import parse, print_program
from uop.spec.text.uop_file import parse_file
from uop.spec.uop import UOp, param

Broken = Callable[[UOp], bool]
Rule = Callable[[UOp], UOp]
I32 = dtypes.int32
T = param(0, (4, 6), I32)


class OneByOne(InterpreterBackend):
    """Runs each program by itself."""

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        return [self._run(program) for program in programs]

    def _run(self, program: Program) -> Outcome:
        raise NotImplementedError


class Miscompiling(OneByOne):
    """Changes each node of a program by a rule, and runs what results."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule

    def _run(self, program: Program) -> Outcome:
        return attempt(lambda: self._changed(program))

    def _changed(self, program: Program) -> Outcome:
        new: dict[UOp, UOp] = {}
        nodes = parse(program.text).toposort()
        for u in nodes:
            new[u] = self.rule(u.with_src(new[s] for s in u.src))
        root = new[nodes[-1]]
        slots = slots_of(root)
        batches = tuple({s: a for s, a in b.items() if s in slots} for b in program.batches)
        return interpret(Program(print_program(root), batches))


class OffByOne(OneByOne):
    """One more in the last element of the result of each node that `broken` picks."""

    def __init__(self, broken: Broken) -> None:
        self.broken = broken
        self.runs = 0

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        self.runs += 1
        return super().run(programs)

    def _run(self, program: Program) -> Outcome:
        root = parse(program.text)
        return Outputs(
            tuple(
                tuple(self._value(u, batch) for u in (root.src if root.op is Op.TUPLE else (root,)))
                for batch in program.batches
            )
        )

    def _value(self, root: UOp, inputs: dict[int, Array]) -> Array:
        new: dict[UOp, UOp] = {}
        given = dict(inputs)
        for u in root.toposort():
            same = u.with_src(new[s] for s in u.src)
            if self.broken(u):
                value = np.array(evaluate(same, used(same, given)))
                to_bits(value).reshape(-1)[-1:] += 1
                given[slot := 100 + len(given)] = value
                same = param(slot, u.shape, u.dtype)
            new[u] = same
        result = evaluate(new[root], used(new[root], given))
        assert isinstance(result, np.ndarray)
        return result


def used(root: UOp, inputs: dict[int, Array]) -> dict[int, Array]:
    slots = {u.arg.slot for u in root.toposort() if u.op is Op.PARAM}  # type: ignore[union-attr]
    return {slot: a for slot, a in inputs.items() if slot in slots}


def find(root: UOp, backend: InterpreterBackend, slots: Sequence[int] = (0, 1)) -> Failure:
    """Judge a program and shrink its failure."""
    random = np.random.default_rng(0)
    inputs = {slot: random.integers(-99, 99, (4, 6)).astype(np.int32) for slot in slots}
    case = Case(CaseId("graph", "MIXED", "int32", "test", 0), root, (Batch(inputs),))
    judge = Judge(Local(backend), STRICT)
    (verdict,) = judge.judge([case])
    assert verdict.status is Status.FAILED
    assert verdict.failure is not None
    return find_cause(judge, Failing(case, verdict.failure))


def elements(finding: Failure) -> int:
    """The elements of the inputs and outputs of a repro."""
    (case,) = parse_file(finding.text).cases
    assert case.root is not None
    return sum(prod(u.shape) for u in (case.root, *slots_of(case.root).values()))


class Backwards(OneByOne):
    """The elements in reverse order, where the program has an op and two of them differ."""

    def __init__(self, op: Op) -> None:
        self.op = op

    def _run(self, program: Program) -> Outcome:
        found = interpret(program)
        if all(u.op is not self.op for u in parse(program.text).toposort()):
            return found
        return Outputs(
            tuple(tuple(a[(slice(None, None, -1),) * a.ndim] for a in b) for b in found.batches)
        )
