"""Runs the adversarial interpreter as a backend: it takes every liberty, and must never fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from zlib import crc32

from uop.conformance.backends.attempt import attempt
from uop.conformance.backends.interpreter import hello_of, in_order
from uop.conformance.judging.expected import may_end
from uop.conformance.protocol.types import Hello, Outcome, Outputs, Problem, ProblemKind, Program
from uop.interpreter.adversary.evaluation import evaluate_adversarially
from uop.interpreter.numeric.storage import Array
from uop.spec.errors import UnsupportedError
from uop.spec.latitude import STRICT, Profile
from uop.spec.ops.names import Op
from uop.spec.text.profile_text import parse_profile
from uop.spec.text.program import parse


@dataclass(frozen=True, slots=True)
class AdversaryBackend:
    """Moves every result to the far ends of its accepted set; a pushed op goes a step further."""

    argument: str = ""
    """`OP:PROFILE`: the op to push, and the profile whose liberties it takes; both optional."""

    @property
    def pushed(self) -> str:
        return self.argument.partition(":")[0]

    @property
    def profile(self) -> Profile:
        return parse_profile(self.argument.partition(":")[2] or str(STRICT))

    def hello(self) -> Hello:
        if self.pushed and self.pushed not in Op.__members__:
            raise UnsupportedError(f"adversary: expected the name of an op, found {self.pushed!r}")
        return hello_of("adversary", self.profile)

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        return [attempt(partial(self._move, program)) for program in programs]

    def _move(self, program: Program) -> Outcome:
        root = parse(program.text)
        push = Op[self.pushed] if self.pushed else None
        profile = self.profile
        if may_end(root, program.batches, profile):
            return Problem(ProblemKind.TRAP, "a division by zero")
        # Results must not depend on earlier programs, and be the same when a program is repeated.
        seed = crc32(program.text.encode())
        moved = (
            evaluate_adversarially(root, inputs, _seed(seed, inputs), push, profile)
            for inputs in program.batches
        )
        return Outputs(tuple(map(in_order, moved)))


def _seed(seed: int, inputs: Mapping[int, Array]) -> int:
    for slot in sorted(inputs):
        seed = crc32(inputs[slot].tobytes(), seed)
    return seed
