"""Reverse-mode gradients: applies the rules of the declarations from a loss to targets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from uop.spec.args import ReduceArg
from uop.spec.conditions.labels import GRADIENT_C1
from uop.spec.errors import UnsupportedError, users_line
from uop.spec.frontend.stored import Absences, without_stores
from uop.spec.frontend.tensor import Tensor
from uop.spec.frontend.values import with_graphs
from uop.spec.frontend.views import reshaped
from uop.spec.graph import all_inlined, all_replaced
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const
from uop.spec.walk import outside_bodies, toposort


def gradient(loss: Tensor, targets: Iterable[Tensor]) -> tuple[Tensor | None, ...]:
    """d loss / d target for each target, of its shape and dtype; None without a gradient.

    The loss is a float of shape (). Absent (INVALID) elements have the gradient 0. A stored value
    has the gradient of what is read after the STORE, the old contents that of the rest (D-097);
    InvalidError GRADIENT.c2 for memory that is written in another way.
    """
    # The graphs of Tensors that are evaluated, whose values the gradients use.
    wanted = [t.uop for t in targets]
    graph, held = with_graphs([loss.uop, *wanted])
    found = backward(graph[loss.uop], [graph[u] for u in wanted])
    values = iter(all_replaced([g for g in found if g is not None], held))
    return tuple(None if g is None else Tensor(next(values)) for g in found)


def backward(loss: UOp, targets: Iterable[UOp]) -> list[UOp | None]:
    """`gradient` on nodes."""
    wanted = list(targets)
    if loss.shape != () or not loss.dtype.is_float:
        found = f"{loss.dtype.name}{list(loss.shape)}"
        raise GRADIENT_C1.error(loss.op.name, found, users_line())
    plain = all_inlined([loss, *wanted], _with_a_rule)
    values = without_stores([plain[loss], *(plain[t] for t in wanted)])
    return _Reverse(values[plain[loss]], [values[plain[t]] for t in wanted]).result()


class _Reverse:
    """One reverse walk from the loss to the targets, over the nodes between them."""

    def __init__(self, loss: UOp, targets: list[UOp]) -> None:
        self._loss, self._targets = loss, targets
        self._gradients: dict[UOp, UOp] = {}
        self._absences = Absences()

    def result(self) -> list[UOp | None]:
        order = toposort([self._loss], _sources)
        between = self._between(order)
        if self._loss in between:
            self._gradients[self._loss] = const(1, self._loss.dtype)
        for u in reversed(order):
            g, rule = self._gradients.get(u), u.declaration.gradient
            if g is None or not any(s in between for s in u.src):
                continue
            if rule is None:
                raise UnsupportedError(f"the gradient of {u.op.name}: no rule is declared for it")
            parts = rule(UOp, u, g)  # type: ignore[arg-type]
            for s, part in zip(u.src, cast("list[UOp | None]", parts), strict=True):
                if part is not None and s in between:
                    self._add(s, part)
        return [self._gradients.get(t) for t in self._targets]

    def _between(self, order: list[UOp]) -> set[UOp]:
        """The float nodes that depend on a target."""
        found: set[UOp] = set()
        targets = set(self._targets)
        for u in order:
            if u.dtype.is_float and (u in targets or any(s in found for s in _sources(u))):
                found.add(u)
        return found

    def _add(self, s: UOp, part: UOp) -> None:
        part = self._absences.filled(self._absent_where(s, _summed_to(part, s)))
        known = self._gradients.get(s)
        self._gradients[s] = part if known is None else UOp(Op.ADD, known, part)

    def _absent_where(self, s: UOp, part: UOp) -> UOp:
        """Make g absent where s is absent: skipped elements do not change the loss."""
        if not self._absences.may_be_in(s):
            return part
        return UOp(Op.WHERE, UOp(Op.CMPEQ, s, s), part, part)


def _with_a_rule(u: UOp) -> UOp:
    """Decompose float ops until they have a gradient rule."""
    if u.declaration.gradient is not None or not u.dtype.is_float:
        return u
    return u.decompose() or u


def _summed_to(part: UOp, s: UOp) -> UOp:
    """Sum over the axes along which the operand was broadcast."""
    if part.shape == s.shape:
        return part
    aligned = (1,) * (len(part.shape) - len(s.shape)) + s.shape
    pairs = enumerate(zip(aligned, part.shape, strict=True))
    axes = tuple(axis for axis, (old, new) in pairs if old != new)
    total = UOp(Op.REDUCE, part, arg=ReduceArg(Op.ADD, axes)) if axes else part
    return reshaped(total, s.shape)


def _sources(u: UOp) -> tuple[UOp, ...]:
    return cast("tuple[UOp, ...]", outside_bodies(u))
