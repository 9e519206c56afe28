"""Programs in the words of the bestiary, line by line."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import Array
from uop.spec.editions import parse, print_program
from uop.spec.uop import UOp

PTR = "%0 = PARAM {slot=0, dtype=float32, size=4}"


def read(*lines: str) -> UOp:
    return parse("\n".join(("edition bestiary", *lines)))


def last_line(u: UOp) -> str:
    return print_program(u, "bestiary").splitlines()[-1]


def value(lines: tuple[str, ...], inputs: Mapping[int, Array]) -> object:
    result = evaluate(read(*lines), dict(inputs))
    if isinstance(result, dict):
        return {slot: data.tolist() for slot, data in result.items()}
    return np.asarray(result).tolist()
