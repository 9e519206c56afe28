"""What a backend may return for a program: the reference evaluation, over sets where they widen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import cast

import numpy as np

from uop.interpreter.accepted.apply import elementwise
from uop.interpreter.accepted.kernels import accepted_of_kernels
from uop.interpreter.accepted.liberties import looks_around
from uop.interpreter.accepted.locations import Locations
from uop.interpreter.accepted.moves import MOVES
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.accepted.rules.folds import reduce
from uop.interpreter.accepted.sets import Sets, points
from uop.interpreter.accepted.trees import Trees
from uop.interpreter.accepted.widening import is_reference, widens
from uop.interpreter.inputs import Inputs, bind_inputs, with_numbers
from uop.interpreter.rules.movement import value_sources
from uop.interpreter.tensor.evaluation import TensorEvaluation, body_arguments
from uop.interpreter.values import Value
from uop.spec.args import GetTupleArg, PadArg, PadFill
from uop.spec.dtype import DType
from uop.spec.extension import in_core_ops
from uop.spec.graph import inlined, kind_of
from uop.spec.latitude import STRICT, Profile
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

TRUNCATED = {Op.CDIV: Op.IDIV, Op.CMOD: Op.MOD}
"""What divisions that round toward zero are where all do."""


def accept(
    root: UOp, inputs: Inputs | None = None, profile: Profile = STRICT
) -> tuple[Accepted, ...]:
    """What each output of a program may be, in the order in which `evaluate` gives them.

    Of a SINK the outputs are the stored slots, in the order of their numbers. Raises UndefinedError
    for a program without meaning on the inputs, also where only some of its accepted values lead
    to that; UnsupportedError for a program that this version has no sets for. Of `int_div_traps`
    no set depends: it says that there may be no result.
    """
    root, given = read_by(root, inputs or {}, profile)
    root = in_core_ops(root)
    if kind_of(root).calls_kernels:
        return accepted_of_kernels(root, given, profile)
    with np.errstate(all="ignore"):
        return AcceptedEvaluation(root, given, {}, profile).accepted()


def read_by(root: UOp, inputs: Inputs, profile: Profile) -> tuple[UOp, dict[UOp, Value]]:
    """A program as a profile reads it, and its inputs: its own PADs and divisions, and
    no calls where it depends on other nodes what one of them may be.
    """
    root = _as_declared(root, profile)
    root, inputs = with_numbers(root, inputs)
    given = bind_inputs(root, inputs)
    # Only then: an argument that no body reads is an input too.
    if looks_around(profile) and any(u.op is Op.FUNCTION for u in root.toposort()):
        root = inlined(root)
    return root, given


class AcceptedEvaluation(TensorEvaluation):
    """The reference evaluation, with sets beside every value that is not the only one."""

    def __init__(
        self,
        root: UOp,
        given: Mapping[UOp, Value],
        given_sets: Mapping[UOp, Sets],
        profile: Profile,
    ) -> None:
        super().__init__(root, given, None)
        self._given_sets, self._profile = given_sets, profile
        self._sets: dict[UOp, Sets] = {}
        self._tuple_sets: dict[UOp, tuple[Sets | None, ...]] = {}
        self._trees = Trees(root, profile)

    @cached_property
    def _locations(self) -> Locations:
        return Locations(self._root.toposort(), self._given)

    def accepted(self) -> tuple[Accepted, ...]:
        root, result = self._root, self.result()
        if isinstance(result, dict):
            stored = self._locations.written()
            return tuple(_unless_single(*stored[slot], result[slot]) for slot in sorted(result))
        if isinstance(result, tuple):
            pairs = zip(_tuple_of(root).src, result, self._tuple_sets[root], strict=True)
            return tuple(Accepted(u.dtype, value, sets) for u, value, sets in pairs)
        if root.addrspace is not None:
            return (_unless_single(root.dtype, self._locations.read(root, root), result),)
        return (Accepted(root.dtype, result, self._sets.get(root)),)

    def _step(self, u: UOp, read: Sequence[UOp]) -> None:
        self._locations.enter(u)
        for s in read:
            self._sets[s] = self._locations.read(s, u)
        super()._step(u, read)
        if u.addrspace is not None:
            self._locations.view(u, self._values, self._sets)
        elif u.op is Op.STORE:
            self._store(u)

    def _store(self, u: UOp) -> None:
        gate = u.src[2] if len(u.src) > 2 else None
        self._locations.write(u, self._of(u.src[1]), None if gate is None else self._of(gate))

    def _compute(self, u: UOp) -> None:
        super()._compute(u)
        if u.op is Op.TUPLE:
            self._tuple_sets[u] = tuple(self._sets.get(s) for s in u.src)

    def _called(self, u: UOp) -> tuple[Value, ...]:
        body, arguments = u.src[0], u.src[1:]
        params = body_arguments(body)
        given = {p: self._values[arguments[slot]] for p, slot in params.items()}
        wide = {p: arguments[slot] for p, slot in params.items() if arguments[slot] in self._sets}
        given_sets = {p: self._sets[argument] for p, argument in wide.items()}
        inner = AcceptedEvaluation(body, given, given_sets, self._profile)
        inner.share_addresses(self, u)
        result = cast("tuple[Value, ...]", inner.result())
        self._tuple_sets[u] = inner._tuple_sets[body]
        return result

    def _value(self, u: UOp) -> Value:
        value = super()._value(u)
        sets = self._widened(u, value)
        if sets is not None:
            self._sets[u] = sets
        return value

    def _widened(self, u: UOp, value: Value) -> Sets | None:
        """The sets of a node; None where they hold the reference alone."""
        if u in self._given:
            return self._given_sets.get(u)
        if u.op is Op.GETTUPLE:
            return self._tuple_sets[u.src[0]][cast(GetTupleArg, u.arg).idx]
        if u.op is Op.GETADDR:
            return None
        sources = value_sources(u)
        if self._sets.keys().isdisjoint(sources):
            operands = [self._values[s] for s in sources]
            if not widens(u, self._profile, operands, value):
                return None
        sets = [self._of(s) for s in sources]
        result = accepted_results(u, self._profile, sets)
        result = self._trees.regrouped(u, sets, result, lambda _, s: s)
        return None if is_reference(result, value, u.dtype) else result

    def _of(self, u: UOp) -> Sets:
        sets = self._sets.get(u)
        return points(self._values[u], u.dtype.is_float) if sets is None else sets


def accepted_results(u: UOp, profile: Profile, operands: list[Sets]) -> Sets:
    """What a node may be for operands taken from sets."""
    if u.op in MOVES:
        return MOVES[u.op](u, *operands)
    if u.op is Op.SLICE:
        return _sliced(u, profile, *operands)
    if u.op is Op.REDUCE:
        return reduce(u, profile, *operands)
    if u.op is Op.BITCAST or u.declaration.is_elementwise:
        return elementwise(u, profile, *operands)
    return operands[0]


def _sliced(u: UOp, profile: Profile, t: Sets) -> Sets:
    """A SLICE, view by view."""
    views: list[UOp] = []
    view = cast(UOp, u.decompose())
    while view is not u.src[0]:
        views.append(view)
        view = view.src[0]
    for view in reversed(views):
        t = accepted_results(view, profile, [t])
    return t


def _unless_single(dtype: DType, sets: Sets, value: Value) -> Accepted:
    return Accepted(dtype, value, None if is_reference(sets, value, dtype) else sets)


def _tuple_of(root: UOp) -> UOp:
    """The TUPLE whose values a root has."""
    while root.op is Op.FUNCTION:
        root = root.src[0]
    return root


def _as_declared(root: UOp, profile: Profile) -> UOp:
    """The same graph, with PADs filled as a profile says, and one kind of divisions if it has one.

    What CDIV decomposes into corrects an IDIV that rounds toward minus infinity.
    """
    fills, truncates = profile.pad_fill == "zero", profile.int_div == "trunc"
    if not (fills or truncates):
        return root
    new: dict[UOp, UOp] = {}
    for u in root.toposort():
        same = u.with_src(new[s] for s in u.src)
        if fills and u.op is Op.PAD and cast(PadArg, u.arg).fill is PadFill.INVALID:
            same = UOp(u.op, *same.src, arg=PadArg(PadFill.ZERO), tag=u.tag)
        elif u.op in TRUNCATED and profile.truncates(u.dtype):
            same = UOp(TRUNCATED[u.op], *same.src, tag=u.tag)
        new[u] = same
    return new[root]
