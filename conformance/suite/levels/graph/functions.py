"""Level function: random graphs computed by FUNCTIONs that call one another, and written out.

A part of a grown graph becomes a body. What it does not hold is given as arguments; these, and the
body itself, are computed by further FUNCTIONs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from uop.conformance.suite.case import MIXED
from uop.conformance.suite.choices import Choices, chance, pick, shuffled
from uop.conformance.suite.levels.graph.growth import Growth
from uop.conformance.suite.levels.graph.random_graph import (
    Flavour,
    batches,
    flavour_in,
    grown,
    homes_in,
)
from uop.conformance.suite.levels.group import Group, Program
from uop.conformance.suite.vocabulary import Vocabulary
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.numeric.storage import Array
from uop.interpreter.rules.movement import data_sources
from uop.spec.args import GetTupleArg
from uop.spec.dtype import DTYPES, DType, Kind
from uop.spec.errors import UndefinedError
from uop.spec.graph import all_replaced, inlined, slots_of
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, param
from uop.spec.walk import outside_bodies, toposort

HOMES: dict[str, tuple[str, ...]] = {
    "integers": ("int8", "int32", "int64", "uint16", "uint64"),
    "floats": ("float32", "float64"),
    "small-floats": ("float16", "bfloat16", "fp8e5m2"),
}
"""The dtypes that graphs start with, by the flavour in which they grow."""

DEEPEST = 3
MOST_CUTS = 4
NEEDS = (Op.FUNCTION, Op.GETTUPLE, Op.TUPLE)
NOT_GIVEN = (Op.PARAM, Op.CONST, Op.TUPLE, Op.FUNCTION)
"""Ops whose value no argument is made of: constants go into bodies, inputs are arguments anyway."""


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    for name, chosen in HOMES.items():
        for home in homes_in(vocabulary, name, chosen):
            for kind, build, counts in KINDS:
                made = partial(build, DTYPES[home], flavour_in(vocabulary, name))
                yield Group("function", MIXED, home, kind, counts, made, NEEDS)


def _nested(home: DType, flavour: Flavour, choices: Choices, index: int) -> Program:
    """FUNCTIONs that call FUNCTIONs, with arguments that other FUNCTIONs return."""
    growth, outputs = _grown(home, flavour, choices)
    root = UOp(Op.TUPLE, *outlined(choices, outputs, DEEPEST))
    return Program(root, batches(growth, root))


def _twin(home: DType, flavour: Flavour, choices: Choices, index: int) -> Program:
    """A graph that holds FUNCTIONs beside the same graph without any."""
    growth, outputs = _grown(home, flavour, choices)
    called = UOp(Op.TUPLE, *outlined(choices, outputs, DEEPEST - 1))
    root = UOp(Op.TUPLE, *called.src, *inlined(called).src)
    return Program(root, batches(growth, root))


def _shared(home: DType, flavour: Flavour, choices: Choices, index: int) -> Program:
    """One body called twice: with its arguments in another order, or with what it returned."""
    growth, outputs = _grown(home, flavour, choices)
    first = outlined(choices, outputs, 1)
    call = first[0].src[0]
    given = call.src[1:]
    pool = [*first, *given]
    others = [pick(choices, _like(a, shuffled(choices, pool)) or [a]) for a in given]
    if others == list(given):
        others[0] = growth.input(given[0].dtype, given[0].shape)
    second = _returned(UOp(Op.FUNCTION, call.src[0], *others))
    root = UOp(Op.TUPLE, *first, *second)
    if not _has_meaning(root, {s: data[0] for s, data in growth.inputs.items()}):
        root = UOp(Op.TUPLE, *first)
    return Program(root, batches(growth, root))


KINDS = (
    ("nested", _nested, (1, 4, 80)),
    ("shared", _shared, (1, 4, 60)),
    ("twin", _twin, (1, 3, 40)),
)


def outlined(choices: Choices, values: Sequence[UOp], depth: int) -> list[UOp]:
    """The same values, returned by a FUNCTION: its body and its arguments may be outlined too."""
    inside = cuts(choices, values)
    reached = toposort(values, lambda u: () if u in inside else outside_bodies(u))
    inputs = [u for u in reached if u.op is Op.PARAM]
    given = shuffled(choices, [*inside, *inputs])
    body = all_replaced(values, _params(given))
    if depth > 1 and chance(choices, 50):
        body = outlined(choices, body, depth - 1)
    if depth > 1 and chance(choices, 60):
        made = [u for u in given if u.op is not Op.PARAM]
        computed = dict(zip(made, outlined(choices, made, depth - 1), strict=True)) if made else {}
        given = [computed.get(u, u) for u in given]
    if given and chance(choices, 20):
        given.append(pick(choices, given))  # An argument that the body does not use.
    return _returned(UOp(Op.FUNCTION, UOp(Op.TUPLE, *body), *given))


def cuts(choices: Choices, values: Sequence[UOp]) -> list[UOp]:
    """Some of the nodes that values are made of: what becomes an argument of their FUNCTION."""
    made = [
        u
        for u in toposort(values, _value_sources)
        if u.op not in NOT_GIVEN and u.dtype.kind is not Kind.VOID
    ]
    return shuffled(choices, made)[: choices.below(MOST_CUTS + 1)]


def _value_sources(u: UOp) -> tuple[UOp, ...]:
    return outside_bodies(u) if u.op is Op.FUNCTION else data_sources(u)


def _params(given: Sequence[UOp]) -> dict[UOp, UOp]:
    """For each argument the PARAM that stands for it."""
    return {u: param(k, u.shape, u.dtype) for k, u in enumerate(given)}


def _returned(call: UOp) -> list[UOp]:
    return [UOp(Op.GETTUPLE, call, arg=GetTupleArg(k)) for k in range(len(call.src[0].src))]


def _like(u: UOp, pool: Sequence[UOp]) -> list[UOp]:
    return [v for v in pool if (v.dtype, v.shape) == (u.dtype, u.shape) and v is not u]


def _grown(home: DType, flavour: Flavour, choices: Choices) -> tuple[Growth, list[UOp]]:
    with np.errstate(all="ignore"):
        growth = grown(home, flavour, choices)
    return growth, growth.outputs()


def _has_meaning(root: UOp, inputs: dict[int, Array]) -> bool:
    used = slots_of(root)
    try:
        evaluate_full(root, {slot: a for slot, a in inputs.items() if slot in used})
    except UndefinedError:
        return False
    return True
