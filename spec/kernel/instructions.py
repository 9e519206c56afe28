"""What programs know only by name: machine instructions, and how each target spells them.

What they compute stands in `uop.interpreter.rules.codegen`, under the same name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from uop.spec.errors import UnsupportedError


@dataclass(frozen=True, slots=True)
class Instruction:
    """A machine instruction: its expression per target, with {k} for operand k."""

    name: str
    spelling: Mapping[str, str]

    def spelled(self, target: str) -> str:
        if target not in self.spelling:
            raise UnsupportedError(f"{target} has no instruction {self.name!r}")
        return self.spelling[target]


def filled(spelling: str, operands: Sequence[str]) -> str:
    """A spelling with an operand for each {k}; other braces are its own. UnsupportedError where it
    names one that is not there.
    """

    def operand(match: re.Match[str]) -> str:
        number = int(match[1])
        if number >= len(operands):
            raise UnsupportedError(f"{spelling!r} names operand {number} of {len(operands)}")
        return operands[number]

    return re.sub(r"\{(\d+)\}", operand, spelling)


INSTRUCTIONS: dict[str, Instruction] = {}


def define_instruction(name: str, **spelling: str) -> Instruction:
    """Enter an instruction; a second one of the same name is a programming error."""
    if name in INSTRUCTIONS:
        raise ValueError(f"the instruction {name!r} is defined twice")
    INSTRUCTIONS[name] = instruction = Instruction(name, spelling)
    return instruction


def instruction_named(name: str) -> Instruction:
    """The instruction; UnsupportedError for a name that nobody has defined."""
    if name not in INSTRUCTIONS:
        known = ", ".join(sorted(INSTRUCTIONS))
        raise UnsupportedError(f"no instruction {name!r}; known are {known}")
    return INSTRUCTIONS[name]


define_instruction("mul_hi", opencl="mul_hi({0}, {1})", cuda="__umulhi({0}, {1})")
define_instruction("popcount", opencl="popcount({0})", cuda="__popc({0})")
define_instruction("clz", opencl="clz({0})", cuda="__clz({0})")
