"""Compute the accepted results of a tensor graph: the reference, with sets where they are wider."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from uop.interpreter.accepted.apply import elementwise
from uop.interpreter.accepted.cells import SetCells
from uop.interpreter.accepted.kernels import launch_accepted
from uop.interpreter.accepted.locations import AcceptedMemory
from uop.interpreter.accepted.moves import MOVES
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.accepted.rules.folds import reduce
from uop.interpreter.accepted.sets import Sets
from uop.interpreter.accepted.trees import Trees
from uop.interpreter.accepted.widening import as_output, narrowed, widens
from uop.interpreter.addresses import Addresses
from uop.interpreter.kernel.buffers import Buffer
from uop.interpreter.tensor.evaluation import ARRAYS, Evaluation
from uop.interpreter.values import Value
from uop.spec.latitude import Profile
from uop.spec.ops.names import Op

if TYPE_CHECKING:
    from uop.spec.uop import UOp


def accepted_of_tensors(
    root: UOp,
    inputs: Mapping[UOp, Value],
    profile: Profile,
    observe: Callable[[UOp, Accepted], None] | None = None,
) -> tuple[Accepted, ...]:
    """Return the accepted results of each output of a tensor graph.

    `observe` is called with each node and its accepted results.
    """
    sets = AcceptedValues(root, profile)
    lifted = {u: sets.lift(u, value) for u, value in inputs.items()}
    result = Evaluation(root, lifted, sets, observe).result()
    if isinstance(result, dict):
        result = tuple(result[slot] for slot in sorted(result))
    outputs = result if isinstance(result, tuple) else (result,)
    nodes = root.src if root.op is Op.TUPLE else (root,) * len(outputs)
    return tuple(
        as_output(u, profile, narrowed(a.dtype, a.value, a.sets))
        for u, a in zip(nodes, outputs, strict=True)
    )


class AcceptedValues:
    """The domain of accepted values of a tensor graph under a profile."""

    def __init__(self, root: UOp, profile: Profile) -> None:
        self._profile, self._trees = profile, Trees(root, profile)

    def lift(self, u: UOp, value: Value) -> Accepted:
        return Accepted(u.dtype, value)

    def result(self, u: UOp, operands: list[Accepted]) -> Accepted:
        values = [a.value for a in operands]
        value = ARRAYS.result(u, values)
        if all(a.sets is None for a in operands) and not widens(u, self._profile, values, value):
            return Accepted(u.dtype, value)
        return narrowed(u.dtype, value, self.sets(u, [a.spread for a in operands]))

    def memory(self, contents: Mapping[UOp, Accepted | None]) -> AcceptedMemory:
        return AcceptedMemory(contents)

    def reference(self, value: Accepted) -> Value:
        return value.value

    def launch(
        self,
        body: UOp,
        arguments: list[Buffer],
        held: Mapping[Buffer, Accepted],
        addresses: Addresses,
    ) -> dict[Buffer, Accepted]:
        sets = {
            buffer: SetCells.holding(buffer, contents.sets)
            for buffer, contents in held.items()
            if contents.sets is not None
        }
        launch_accepted(body, arguments, addresses, sets, self._profile)
        return {
            buffer: narrowed(
                contents.dtype, buffer.contents, sets[buffer].held() if buffer in sets else None
            )
            for buffer, contents in held.items()
        }

    def sets(self, u: UOp, operands: list[Sets]) -> Sets:
        """Return the accepted results of an op for operands that are sets."""
        result = _results(u, self._profile, operands)
        return self._trees.regrouped(u, operands, result, lambda _, s: s)


def _results(u: UOp, profile: Profile, operands: list[Sets]) -> Sets:
    """Apply the set rule of an op."""
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
    """Apply a SLICE to each part of the sets."""
    views: list[UOp] = []
    view = cast("UOp", u.decompose())
    while view is not u.src[0]:
        views.append(view)
        view = view.src[0]
    for view in reversed(views):
        t = _results(view, profile, [t])
    return t
