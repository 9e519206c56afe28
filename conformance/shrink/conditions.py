"""Finds when a repro fails: judges its neighbours, which differ from it in one thing each.

A neighbour that passes shows a condition: without that thing the program is right. A neighbour of
another dtype that fails too shows that the failure is not about the dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial

import numpy as np

from uop.conformance.coverage.value_classes import named
from uop.conformance.judging.judge import Judge
from uop.conformance.judging.verdict import CaseFailure, Status
from uop.conformance.report.model import CALLED, PROMOTED, SPECIAL, When
from uop.conformance.shrink.axes import without_last
from uop.conformance.shrink.explain import alike, special_classes
from uop.conformance.shrink.pattern import converted
from uop.conformance.shrink.probe import LEAST_WORK, verdicts, work_of
from uop.conformance.shrink.promotion import NARROW, unpromoted
from uop.conformance.shrink.reduce import Candidate, cut, interpreted, valid, with_used_inputs
from uop.interpreter.numeric.storage import Array, constant, to_bits
from uop.spec.args import BufferArg, ConstArg, DTypeArg, FlipArg, ReduceArg, arg_of
from uop.spec.dtype import INTS, VALUES, DType, dtypes
from uop.spec.errors import UopError
from uop.spec.graph import inlined, kind_of, leaves, outside, rebuild, replaced, slot_of, slots_of
from uop.spec.ops.names import Op
from uop.spec.properties.shape import fixed
from uop.spec.registry import DECLARATIONS
from uop.spec.uop import UOp, param

OPERANDS = ("first", "second", "third")
WIDE = frozenset(d.name for d in INTS if d not in NARROW)
LONG = 4
"""An axis of fewer elements is no condition: most programs that compute something have it."""


class Of(Enum):
    """In what a neighbour differs: it lacks a thing, or has another dtype or op."""

    THING = "thing"
    DTYPE = "dtype"
    OP = "op"


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Makes a program that differs from a repro in one thing: that thing, in words."""

    name: str
    make: Callable[[], Candidate]
    of: Of = Of.THING


def conditions(judge: Judge, repro: Candidate, failure: CaseFailure) -> When:
    """When a repro fails, as its neighbours show, with other dtypes and ops of the backend."""
    if kind_of(repro.root).calls_kernels:
        return When()
    hello = judge.session.hello
    near = [
        *_valid(_lacking_one_thing(repro)),
        *_valid(_on_other_dtypes(repro, (d for d in VALUES if d.name in hello.dtypes))),
        *_valid(_with_other_ops(repro, hello.ops)),
        *_valid(_folded_or_not(repro)),
    ]
    most = max(LEAST_WORK, 2 * work_of(repro))
    found = verdicts(judge, [program for _, program in near], hello.ops, most)
    judged = [
        (neighbour, verdict.failure and alike(verdict.failure, failure))
        for (neighbour, _), verdict in zip(near, found, strict=True)
        if verdict is not None and verdict.status is not Status.SKIPPED
    ]

    def names(of: Of, is_alike: bool | None) -> list[str]:
        """The neighbours that fail alike, or otherwise; with None those that pass."""
        return list(dict.fromkeys(n.name for n, found in judged if (n.of, found) == (of, is_alike)))

    needs, on = names(Of.THING, None), names(Of.DTYPE, True)
    if special := special_classes(repro):
        needs.append(SPECIAL + ", ".join(named(special)))
    otherwise = [name for name in names(Of.DTYPE, False) if name not in on]
    off = [name for name in names(Of.DTYPE, None) if name not in (*on, *otherwise)]
    also = names(Of.OP, True)
    # What is wrong on wide integers too is another fault, such as a rule that overlooks overflow; a
    # backend without wide integers does not show which of the two it is.
    is_narrow = WIDE.isdisjoint(on) and not WIDE.isdisjoint(off)
    is_promoted = is_narrow and unpromoted(repro, failure) == ()
    as_if = PROMOTED if is_promoted else ""
    on_others = tuple(on), tuple(otherwise), tuple(off)
    return When(tuple(needs), *on_others, tuple(also), len(judged), as_if)


def _valid(neighbours: Iterable[Neighbour]) -> Iterator[tuple[Neighbour, Candidate]]:
    for one in neighbours:
        with suppress(UopError, OverflowError):
            yield one, valid(one.make())


def _lacking_one_thing(repro: Candidate) -> Iterator[Neighbour]:
    try:
        values = interpreted(repro)
    except UopError:
        return
    if any(u.op is Op.FUNCTION for u in outside(repro.root)):
        yield Neighbour(CALLED, lambda: with_used_inputs(inlined(repro.root), repro.inputs))
    for u in outside(repro.root):
        if u.declaration.is_elementwise and len(u.src) > 1:
            yield from _apart(repro, u, values)
            yield from _whole(repro, u, values)
        elif u.op is Op.EXPAND and u in values and u.src[0] in values:
            axes = _repeated(fixed(u.src[0]), fixed(u))
            said = f"EXPAND repeats along axis {', '.join(map(str, axes))}"
            if axes:
                yield Neighbour(said, partial(cut, repro, values, [u]))
        for k, s in enumerate(u.src if u.declaration.is_elementwise else ()):
            if s.op is Op.CONST:
                said = f"its {_operand(u, k)} is a constant"
                data = constant(arg_of(s, ConstArg).bits, s.dtype)
                yield Neighbour(said, partial(_with_input, repro, u, k, data))
    for n in sorted({n for leaf in leaves(repro.root) for n in fixed(leaf) if n >= LONG}):
        yield Neighbour(f"an axis has {n:,} elements or more", partial(without_last, repro, n))


def _apart(repro: Candidate, u: UOp, values: Mapping[UOp, Array]) -> Iterator[Neighbour]:
    """Operands that are one node as two nodes of equal values."""
    for k, s in enumerate(u.src):
        if s in u.src[:k] and s in values and s.op is not Op.CONST:
            said = f"the operands of {u.op.name} are one node"
            yield Neighbour(said, partial(_with_input, repro, u, k, values[s]))


def _whole(repro: Candidate, u: UOp, values: Mapping[UOp, Array]) -> Iterator[Neighbour]:
    """Operands that broadcast with all their elements."""
    for k, s in enumerate(u.src):
        if s in values and s.op is not Op.CONST and fixed(s) != fixed(u):
            axes = _repeated(fixed(s), fixed(u))
            said = f"its {_operand(u, k)} repeats along axis {', '.join(map(str, axes))}"
            data = np.broadcast_to(values[s], fixed(u)).copy()
            if axes:
                yield Neighbour(said, partial(_with_input, repro, u, k, data))


def _operand(u: UOp, k: int) -> str:
    return "operand" if len(u.src) == 1 else f"{OPERANDS[k]} operand"


def _repeated(part: Sequence[int], whole: Sequence[int]) -> list[int]:
    """The axes of a whole along which a part of it repeats."""
    padded = (*(1 for _ in whole[len(part) :]), *part)
    return [k for k, (n, size) in enumerate(zip(padded, whole, strict=True)) if n != size]


def _with_input(repro: Candidate, u: UOp, k: int, data: Array) -> Candidate:
    """The program with an input in place of operand k of a node."""
    slot = max({*repro.inputs, *slots_of(repro.root)}, default=-1) + 1
    new = param(slot, data.shape, u.src[k].dtype)
    instead = u.with_src((*u.src[:k], new, *u.src[k + 1 :]))
    return with_used_inputs(replaced(repro.root, {u: instead}), {**repro.inputs, slot: data})


def _on_other_dtypes(repro: Candidate, others: Iterable[DType]) -> Iterator[Neighbour]:
    """The program with other dtypes for that of its first input or constant, by both ways of
    `converted`.
    """
    read = (u.dtype for u in outside(repro.root) if u.declaration.is_source)
    old = next((d for d in read if d is not dtypes.index), None)
    for new in others:
        if old is not None and new not in (old, dtypes.index):
            for by_role in (False, True):
                yield Neighbour(new.name, partial(_on_dtype, repro, old, new, by_role), Of.DTYPE)


def _on_dtype(repro: Candidate, old: DType, new: DType, by_role: bool) -> Candidate:
    def visit(u: UOp, src: list[UOp]) -> UOp:
        match u.arg:
            case DTypeArg(dtype=dtype) if dtype is old:
                return UOp(u.op, *src, arg=DTypeArg(new))
            case BufferArg(dtype=dtype) if dtype is old:
                return UOp(u.op, *src, arg=replace(u.arg, dtype=new))
            case ConstArg(dtype=dtype, bits=bits) if dtype is old:
                data = converted(constant(bits, old).reshape(1), old, new, by_role)
                return UOp(u.op, arg=ConstArg(int(to_bits(data)[0]), new))
        is_input = u.op is Op.PARAM and u.dtype is old
        return param(slot_of(u), u.shape, new, u.device) if is_input else u.with_src(src)

    of = {slot_of(u): u.dtype for u in leaves(repro.root)}
    inputs = {
        slot: converted(a, old, new, by_role) if of.get(slot) is old else a
        for slot, a in repro.inputs.items()
    }
    return Candidate(rebuild(repro.root, visit), inputs)


def _with_other_ops(repro: Candidate, ops: Set[str]) -> Iterator[Neighbour]:
    """The program with other ops in place of the only op that computes on elements."""
    own = {u.op for u in outside(repro.root) if u.declaration.is_elementwise}
    old = own.pop() if len(own) == 1 else None
    if old is None or not DECLARATIONS[old].takes_values:
        return
    for name in sorted(ops & Op.__members__.keys() - {old.name}):
        other = DECLARATIONS[Op[name]]
        is_alike = other.is_elementwise and other.src == DECLARATIONS[old].src
        if is_alike and other.takes_values:
            yield Neighbour(name, partial(_with_op, repro, old, Op[name]), Of.OP)


def _with_op(repro: Candidate, old: Op, new: Op) -> Candidate:
    def visit(u: UOp, src: list[UOp]) -> UOp:
        return UOp(new, *src) if u.op is old else u.with_src(src)

    return Candidate(rebuild(repro.root, visit), repro.inputs)


def _folded_or_not(repro: Candidate) -> Iterator[Neighbour]:
    """An op alone as a fold, and a fold alone as its op, on its operand and that in reverse."""
    root = repro.root
    match root.arg:
        case ReduceArg(op=op) if root.op is Op.REDUCE:
            (t,) = root.src
            flipped = UOp(Op.FLIP, t, arg=FlipArg((True,) * len(t.shape)))
            yield Neighbour(op.name, lambda: replace(repro, root=UOp(op, t, flipped)), Of.OP)
        case _ if root.declaration.identity is not None and root.src:
            yield Neighbour(Op.REDUCE.name, partial(_folded, repro), Of.OP)


def _folded(repro: Candidate) -> Candidate:
    root = repro.root
    fold = ReduceArg(root.op, (0,))
    return replace(repro, root=UOp(Op.REDUCE, UOp(Op.STACK, *root.src), arg=fold))
