"""The table of machine instructions: how each target spells an INS by name.

`uop.interpreter.rules.codegen` has their meaning under the same name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from uop.spec.args import InsArg, arg_of
from uop.spec.conditions.clauses import lacking
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.uop import UOp


@dataclass(frozen=True, slots=True)
class Instruction:
    """A machine instruction: by target its expression, with {k} for operand k."""

    name: str
    operands: tuple[DType, ...]
    """The dtypes that an operand may have."""
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


def define_instruction(name: str, operands: tuple[DType, ...], **spelling: str) -> Instruction:
    """Enter an instruction; ValueError for a second one of the same name."""
    if name in INSTRUCTIONS:
        raise ValueError(f"the instruction {name!r} is defined twice")
    INSTRUCTIONS[name] = instruction = Instruction(name, operands, spelling)
    return instruction


def instruction_named(name: str) -> Instruction:
    """The instruction of a name; UnsupportedError for an undefined one."""
    if name not in INSTRUCTIONS:
        known = ", ".join(sorted(INSTRUCTIONS))
        raise UnsupportedError(f"no instruction {name!r}; known are {known}")
    return INSTRUCTIONS[name]


def check_operands(u: UOp) -> None:
    """LackingError for an operand of a dtype that the instruction of an INS does not take."""
    instruction = INSTRUCTIONS.get(arg_of(u, InsArg).name)
    if instruction is None:
        return
    for s in u.src:
        if s.dtype not in instruction.operands:
            takes = " or ".join(d.name for d in instruction.operands)
            found = f"{instruction.name} on {s.dtype.name}, expected {takes}"
            raise lacking("INS.n2", found, u)


WORD = (dtypes.uint32,)
BITS = (dtypes.uint32, dtypes.int32)
define_instruction("mul_hi", WORD, opencl="mul_hi({0}, {1})", cuda="__umulhi({0}, {1})")
define_instruction("popcount", BITS, opencl="popcount({0})", cuda="__popc({0})")
define_instruction("clz", BITS, opencl="clz({0})", cuda="__clz({0})")
