"""Says what programs reach: ops on operands and values, rules of properties and of the compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from uop.conformance.coverage.exercised import MIN_MAX, RULES, exercised
from uop.conformance.coverage.value_classes import named
from uop.conformance.judging.judge import Judge
from uop.conformance.judging.storage import file_text, to_literals
from uop.conformance.native import is_native
from uop.conformance.run.tasks import Reaching
from uop.conformance.suite.case import Batch, Case
from uop.conformance.workers.sessions import started
from uop.interpreter.inputs import with_numbers
from uop.spec.case import FileCase
from uop.spec.latitude import STRICT
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import variables
from uop.spec.uop import UOp


@dataclass(slots=True)
class Reached:
    """What the programs of one process have reached so far."""

    points: set[str] = field(default_factory=set)

    def new(
        self, judge: Judge, cases: Iterable[Case], fired: Mapping[str, int]
    ) -> Iterator[Reaching]:
        """Yield the programs of cases that reach new points; `fired` counts their rules.

        Where a rule is new, those that reach nothing else new are judged once more, by halves, to
        see which of them fires it.
        """
        new = frozenset(rule for rule, count in fired.items() if count) - self.points
        rest: list[Case] = []
        for program in (alone for case in cases for alone in _alone(case)):
            points = points_of(program)
            if points <= self.points:
                rest.append(program)
            else:
                self.points |= points
                yield Reaching(text_of(program), points)
        for program, rules in by_program(judge, rest, new).items():
            yield Reaching(text_of(program), points_of(program) | rules)
        self.points |= new


def by_program(
    judge: Judge, programs: Sequence[Case], rules: frozenset[str]
) -> dict[Case, frozenset[str]]:
    """For each of some rules of the backend a program that fires it, found by halves."""
    if not (programs and rules):
        return {}
    found = rules & _fired(judge, programs)
    if len(programs) == 1 or not found:
        return {program: found for program in programs if found}
    half = len(programs) // 2
    first = by_program(judge, programs[:half], found)
    return first | by_program(judge, programs[half:], found.difference(*first.values()))


@contextmanager
def rules_on(backend: str | None) -> Iterator[Callable[[Case], frozenset[str]]]:
    """A function that runs a program on a backend: which rules it fires; without one, none."""
    if backend is None:
        yield lambda program: frozenset()
        return
    with started(backend) as session:
        judge = Judge(session, STRICT)
        yield lambda program: _fired(judge, [program])


def points_of(program: Case) -> frozenset[str]:
    """The points that a program reaches on its inputs, a function of these alone: its variables are
    bound, as when a file of it is judged.

    The ledger of a run has some of them. Intervals are left out: they count by the level of a case,
    which a file does not have.
    """
    if variables(program.root):
        root, inputs = with_numbers(program.root, program.batches[0].inputs)
        program = Case(program.id, root, (Batch(inputs),))
    shown = exercised(program)
    values = (f"{cell} {name}" for cell, classes in shown.values.items() for name in named(classes))
    rules = (
        f"{op} {name}"
        for op, several in shown.rules.items()
        for bit, name in enumerate(RULES)
        if (several & ~MIN_MAX) >> bit & 1
    )
    return frozenset([*values, *rules, *_of_nodes(program.root)])


def text_of(program: Case) -> str:
    """The text of the file of a program with its first inputs."""
    inputs = to_literals(program.batches[0].inputs)
    return file_text(FileCase(root=program.root, inputs=inputs))


def is_kept(root: UOp) -> bool:
    """Whether a corpus may keep a program. The SOURCE of a PROGRAM is that of this version."""
    return not is_native(root) and all(u.op is not Op.PROGRAM for u in root.toposort())


def _fired(judge: Judge, programs: Sequence[Case]) -> frozenset[str]:
    judge.fired.clear()
    judge.judge(programs)
    return frozenset(rule for rule, count in judge.fired.items() if count)


def _of_nodes(root: UOp) -> Iterator[str]:
    """Each op with its dtype, and with the op of each operand."""
    for u in root.toposort():
        yield f"{u.op.name} {u.dtype.name}"
        yield from (f"{u.op.name} of {s.op.name}" for s in u.src)


def _alone(case: Case) -> Iterator[Case]:
    """The program of a case and its twins, each as a case of its own on its first inputs."""
    for program in case.programs:
        if is_kept(program.root):
            yield Case(case.id, program.root, program.batches[:1])
