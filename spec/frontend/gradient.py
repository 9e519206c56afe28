"""Reverse-mode gradients: applies the rules of the declarations from a loss to targets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from uop.spec.args import PadArg, PadFill, ReduceArg, arg_of
from uop.spec.conditions.labels import invalid
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.frontend.tensor import Tensor
from uop.spec.frontend.values import with_graphs
from uop.spec.frontend.views import reshaped
from uop.spec.graph import (
    LEAVES,
    all_inlined,
    all_rebuilt,
    all_replaced,
    base_of,
    outside_bodies,
    over,
    put_back,
    toposort,
    viewed,
    views_of,
)
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const


def without_stores(roots: Iterable[UOp]) -> dict[UOp, UOp]:
    """Map every value and location of these graphs to a value without effects (D-097).

    A STORE through views becomes WHERE(inside, value, old) of their buffer. InvalidError
    GRADIENT.c2 for memory that another op writes, or that is written through another view.
    """
    roots = list(roots)
    order = toposort(roots, outside_bodies)
    if not any(u.op is Op.AFTER and len(u.src) > 1 for u in order):
        return {u: u for u in order}
    absences, done = Absences(), dict[UOp, UOp]()

    def without(u: UOp, src: list[UOp]) -> UOp:
        if u.op is Op.AFTER:
            return _after(u, done, absences) if len(u.src) > 1 else src[0]
        return over(u, src) if u.dtype is not dtypes.void and u.op not in LEAVES else u

    return all_rebuilt(roots, without, outside_bodies, done)


class Absences:
    """Decides which values may have absent elements."""

    def __init__(self) -> None:
        self._may_be: dict[UOp, bool] = {}

    def may_be_in(self, value: UOp) -> bool:
        """Whether a value may have INVALID elements of a PAD that no REDUCE has skipped."""
        known = self._may_be
        for u in toposort([value], lambda v: () if v in known else outside_bodies(v)):
            if u not in known:
                if u.op is Op.PAD:
                    invalid = arg_of(u, PadArg).fill is PadFill.INVALID
                    known[u] = invalid or known[u.src[0]]
                else:
                    known[u] = u.op is not Op.REDUCE and any(known[s] for s in outside_bodies(u))
        return known[value]

    def filled(self, value: UOp) -> UOp:
        """Replace absent elements by 0, by a REDUCE, which skips INVALID elements."""
        if not self.may_be_in(value):
            return value
        column = reshaped(value, (*value.shape, 1))
        total = UOp(Op.REDUCE, column, arg=ReduceArg(Op.ADD, (len(value.shape),)))
        return reshaped(total, value.shape)


def _after(u: UOp, done: dict[UOp, UOp], absences: Absences) -> UOp:
    """The value of a location after the STOREs that it depends on."""
    for view in views_of(u):
        if view.addrspace is None or not (view.declaration.is_view or view.op is Op.INDEX):
            raise _refused(u, f"AFTER of {view.op.name}")
    held = base = base_of(u)
    for effect in toposort([u], outside_bodies):
        if effect.dtype is dtypes.void and effect.op not in (Op.STORE, Op.GROUP, Op.NOOP):
            raise _refused(u, f"{effect.op.name} before it")
        if effect.op is Op.STORE and base_of(effect.src[0]) is base:
            held = _updated(effect, held, done, absences)
    return viewed(u, held, done)


def _updated(store: UOp, old: UOp, done: dict[UOp, UOp], absences: Absences) -> UOp:
    """A buffer after a STORE; absent and gated elements keep the old contents."""
    value = done[store.src[1]]
    if value.dtype is dtypes.bool:
        raise _refused(store, "a STORE of bools")
    stays, goes, kept = const(0, dtypes.int32), const(1, dtypes.int32), const(0, value.dtype)
    inside = UOp(Op.WHERE, UOp(Op.CMPEQ, value, value), goes, goes)
    inside = absences.filled(inside)
    value = absences.filled(value)
    if len(store.src) > 2:
        gate = absences.filled(done[store.src[2]])
        inside = UOp(Op.WHERE, gate, inside, stays)
        value = UOp(Op.WHERE, gate, value, kept)
    for view in views_of(store.src[0]):
        if view.op is Op.EXPAND or not (view.declaration.is_view or view.op is Op.INDEX):
            raise _refused(store, f"a STORE through {view.op.name}")
        around = view.with_src([view.src[0], *(done[s] for s in view.src[1:])])
        inside, value = (put_back(around, part) for part in (inside, value))
    return UOp(Op.WHERE, UOp(Op.CMPNE, inside, stays), value, old)


def _refused(u: UOp, found: str) -> Exception:
    return invalid("GRADIENT.c2", u.op.name, found, u)


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
        raise invalid("GRADIENT.c1", loss.op.name, found)
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
