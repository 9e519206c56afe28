"""Varies a program: other sizes, offsets, bounds of loops and constants in the same graph.

All of these are CONSTs, and equal ones are one node, so a size changes wherever it stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import prod

import numpy as np

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels.group import Generated, program
from uop.conformance.suite.values import special_bits
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.footprint import SMALL, WorkError, at_most, metered
from uop.interpreter.inputs import bind_inputs
from uop.spec.args import ConstArg, arg_of
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UopError
from uop.spec.graph import slots_of
from uop.spec.ops.names import Op
from uop.spec.properties.shape import fixed
from uop.spec.uop import UOp, const, index_const
from uop.spec.walk import rebuild

TRIES = 12
"""Many changes of sizes break a constraint, or let the program read what is not there."""
WORK = 1 << 16
"""The most elements of inputs, and the most that a varied program computes."""
SIZES = (0, 1, 2, 3, 5, 6, 7, 12, 16, 31, 33, 64, 100, 129, 257, 1001, 1025, 4099)


def varied(made: Generated, choices: Choices) -> Generated:
    """The program with one to three CONSTs changed; as it is where no change gives it a meaning.

    One that a source gives its meaning, or that has twins, would have to change together with them.
    """
    numbers = [u for u in made.root.toposort() if u.op is Op.CONST]
    if made.source is not None or made.twins or not numbers:
        return made
    for _ in range(TRIES):
        chosen = [choices.pick(numbers) for _ in range(choices.between(1, 3))]
        new = {u: _other(u, numbers, choices) for u in chosen}
        with suppress(UopError):
            return _with_meaning(_changed(made, new))
    return made


def _other(u: UOp, numbers: Sequence[UOp], choices: Choices) -> UOp:
    """Another number: a special one, a size, or one made of it and another of the program."""
    dtype = u.dtype
    if choices.chance(50):
        if dtype is dtypes.index:
            return index_const(choices.pick(SIZES))
        bits = choices.pick([*special_bits(dtype).values()])
        return UOp(Op.CONST, arg=ConstArg(choices.pick(bits), dtype))
    like = [n for n in numbers if n.dtype is dtype]
    old, other = (arg_of(n, ConstArg).value for n in (u, choices.pick(like)))
    made_of = (-old, old + 1, old - 1, old * 2, old * 3, old * other, old + other, other)
    new = choices.pick(made_of)
    return const(new if dtype.is_float else _wrapped(int(new), dtype), dtype)


def _wrapped(number: int, dtype: DType) -> int:
    least = int(dtype.min)
    return (number - least) % (1 << dtype.bits) + least


def _changed(made: Generated, new: Mapping[UOp, UOp]) -> Generated:
    """The program with other nodes; its inputs repeat, or end earlier, where sizes are others."""
    root = rebuild(made.root, lambda u, src: new.get(u) or u.with_src(src))
    shapes = {slot: fixed(u) for slot, u in slots_of(root).items()}
    if sum(map(prod, shapes.values())) > WORK:
        raise WorkError(f"inputs of more than {WORK} elements")
    batches = (
        {slot: np.resize(a, shapes[slot]) for slot, a in batch.inputs.items()}
        for batch in made.batches
    )
    return program(root, *batches)


def _with_meaning(made: Generated) -> Generated:
    """The program itself. UopError where it has no meaning on its inputs, or computes too much."""
    for batch in made.batches:
        bind_inputs(made.root, batch.inputs)
        with metered(WORK), at_most(SMALL):
            evaluate_full(made.root, batch.inputs)
    return made
