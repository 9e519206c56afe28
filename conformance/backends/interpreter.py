"""Runs the interpreter as a backend: it tests the suite, and the round trip through text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from uop.conformance.backends.attempt import attempt
from uop.conformance.protocol.types import Hello, Outcome, Outputs, Program
from uop.interpreter.evaluate import Output, evaluate
from uop.interpreter.inputs import Inputs
from uop.interpreter.numeric.storage import Array
from uop.interpreter.tensor.devices import evaluate_by_devices
from uop.spec.distribution import own_version
from uop.spec.dtype import DTYPES
from uop.spec.latitude import STRICT, Profile
from uop.spec.ops.names import Op
from uop.spec.text.program import parse
from uop.spec.uop import UOp


class InterpreterBackend:
    """Evaluates programs, and checks each value against its derived properties."""

    def hello(self) -> Hello:
        return hello_of("interpreter")

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        return list(map(outcome_of, programs))


CHECKS = frozenset({"check"})
EVERY_OP = frozenset(op.name for op in Op)
EVERY_DTYPE = frozenset(DTYPES)


def hello_of(name: str, profile: Profile = STRICT) -> Hello:
    """The hello of a backend of this project, which takes every program."""
    about = (name, own_version(), "numpy", EVERY_OP, EVERY_DTYPE)
    return Hello(*about, offers=CHECKS, profile=str(profile))


def outcome_of(program: Program) -> Outcome:
    """What one program gives, or the problem of the interpreter with it."""
    return attempt(partial(interpret, program))


def interpret(program: Program) -> Outputs:
    """Evaluate one program on each of its batches."""
    root = parse(program.text)
    run = evaluate_whole if is_sharded(root) else evaluate
    return Outputs(tuple(in_order(run(root, batch)) for batch in program.batches))


def is_sharded(root: UOp) -> bool:
    """Whether a value of a program is split over devices."""
    return any(isinstance(u.device, tuple) for u in root.toposort())


def evaluate_whole(root: UOp, inputs: Inputs) -> Output:
    """Evaluate on several devices, and join their parts."""
    results = evaluate_by_devices(root, inputs)
    if isinstance(results, dict):
        return {slot: parts.whole().data for slot, parts in results.items()}
    if isinstance(results, tuple):
        return tuple(parts.whole().data for parts in results)
    return results.whole().data


def in_order(output: Output) -> tuple[Array, ...]:
    """The outputs of a program as a tuple: a value, the members of a TUPLE, the buffers by slot."""
    if isinstance(output, dict):
        return tuple(output[slot] for slot in sorted(output))
    return output if isinstance(output, tuple) else (output,)
