"""Runs one program on one backend, in a worker process."""

from __future__ import annotations

from collections.abc import Mapping

from uop.conformance.judging.lowering import submission_of
from uop.conformance.judging.storage import output_keys
from uop.conformance.protocol.types import Outcome, Outputs, Problem, ProblemKind
from uop.conformance.suite.case import MIXED, Batch, Case, CaseId
from uop.conformance.workers.sessions import known, started
from uop.conformance.workers.transport import Allowance
from uop.interpreter.inputs import with_numbers
from uop.interpreter.numeric.storage import Array
from uop.interpreter.values import Value
from uop.spec.errors import BackendError, UndefinedError, UnsupportedError
from uop.spec.uop import UOp


def run_on(
    name: str, root: UOp, inputs: Mapping[int, Array], timeout: float | None = None
) -> dict[int, Value]:
    """The results by number; an error if the backend cannot be started, returns none, or takes
    longer than `timeout` seconds to start or to run it.

    The variables of a program are replaced by their values before it is sent.
    """
    known(name)
    root, left = with_numbers(root, inputs)
    inputs = {slot: inputs[slot] for slot in left}
    # The interpreter runs first: it refuses wrong inputs before a process starts.
    numbers = output_keys(root, inputs)
    id = CaseId("run", MIXED, MIXED, "command line", 0)
    with started(name, allowance=Allowance.within(timeout)) as session:
        submission = submission_of(Case(id, root, (Batch(inputs),)), session.hello)
        if submission.reason:
            raise UnsupportedError(submission.reason)
        session.submit(submission.programs)
        outcome = submission.outcome(session.collect())
    arrays = outputs_of(name, outcome)
    if len(arrays) != len(numbers):
        raise BackendError(f"backend {name!r}: {len(arrays)} outputs for {len(numbers)}")
    return {number: Value(a) for number, a in zip(numbers, arrays, strict=True)}


def outputs_of(name: str, outcome: Outcome) -> tuple[Array, ...]:
    """The outputs of the only batch; a problem is raised as an error."""
    match outcome:
        case Outputs(batches=(arrays,)):
            return arrays
        case Problem(kind=ProblemKind.UNSUPPORTED, message=message):
            raise UnsupportedError(f"backend {name!r}: {message}")
        case Problem(kind=ProblemKind.TRAP, message=message, label=label):
            said = message.removeprefix(f"{label}: ")
            raise UndefinedError(label, f"backend {name!r}: {said}")
        case Problem(kind=kind, message=message):
            raise BackendError(f"backend {name!r} ({kind.value}): {message}")
    raise BackendError(f"backend {name!r}: outputs of {len(outcome.batches)} batches for one")
