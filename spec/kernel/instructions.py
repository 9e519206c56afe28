"""The table of machine instructions: how each target spells an INS by name.

`uop.interpreter.rules.codegen` has their meaning under the same name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from uop.spec.errors import UnsupportedError


@dataclass(frozen=True, slots=True)
class Instruction:
    """A machine instruction: by target its expression, with {k} for operand k."""

    name: str
    spelling: Mapping[str, str]

    def spelled(self, target: str) -> str:
        if target not in self.spelling:
            raise UnsupportedError(f"{target} has no instruction {self.name!r}")
        return self.spelling[target]


def filled(spelling: str, operands: Sequence[str]) -> str:
    """Put operand k in place of each {k} of a spelling; other braces stay. UnsupportedError for a
    number without operand.
    """

    def operand(match: re.Match[str]) -> str:
        number = int(match[1])
        if number >= len(operands):
            raise UnsupportedError(f"{spelling!r} names operand {number} of {len(operands)}")
        return operands[number]

    return re.sub(r"\{(\d+)\}", operand, spelling)


INSTRUCTIONS: dict[str, Instruction] = {}


def define_instruction(name: str, **spelling: str) -> Instruction:
    """Enter an instruction; ValueError for a second one of the same name."""
    if name in INSTRUCTIONS:
        raise ValueError(f"the instruction {name!r} is defined twice")
    INSTRUCTIONS[name] = instruction = Instruction(name, spelling)
    return instruction


def instruction_named(name: str) -> Instruction:
    """The instruction of a name; UnsupportedError for an undefined one."""
    if name not in INSTRUCTIONS:
        known = ", ".join(sorted(INSTRUCTIONS))
        raise UnsupportedError(f"no instruction {name!r}; known are {known}")
    return INSTRUCTIONS[name]


define_instruction("mul_hi", opencl="mul_hi({0}, {1})", cuda="__umulhi({0}, {1})")
define_instruction("popcount", opencl="popcount({0})", cuda="__popc({0})")
define_instruction("clz", opencl="clz({0})", cuda="__clz({0})")
