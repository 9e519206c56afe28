"""Kernel programs as input of the compiler: finds the stage at which each enters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from operator import mul

from uop.compiler.loops import ITEMS, type_of
from uop.compiler.rewriting.patterns import int_value
from uop.compiler.rewriting.simplify import linear_form
from uop.compiler.stages.expand import MOST_ELEMENTS
from uop.compiler.stages.select.launch import is_work_item, shared_folds
from uop.compiler.stages.select.stage import has, has_vector
from uop.compiler.targets.target import Target
from uop.spec.args import AddrSpace, BufferArg
from uop.spec.dtype import dtypes
from uop.spec.errors import PassError, RefusedError, UnsupportedError
from uop.spec.graph import accessed, base_of, kernel_calls, kernels, slot_of
from uop.spec.kernel.forms import (
    BY_ITEMS,
    ELEMENTWISE,
    EXPANDED,
    FORMS,
    LINEARIZED,
    LISTED,
    ONE_BY_ONE,
    OPTIMIZED,
    RANGED,
    Form,
    open_ranges,
    verify,
)
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import is_size, variables_of
from uop.spec.uop import UOp, dims

FORMS_THAT_ENTER: tuple[tuple[Form, str], ...] = (
    (RANGED, "optimize"),
    (EXPANDED, "select"),
    (OPTIMIZED, "expand"),
    (ONE_BY_ONE, "select"),
    (BY_ITEMS, "select"),
    (LINEARIZED, "plan"),
    (LISTED, "linearize"),
)
"""The input forms of kernel programs, each with the first stage that it needs."""
PARALLEL = (RANGED, EXPANDED, OPTIMIZED)
"""The forms whose outer loops become work items or copies."""


def alone(call: UOp) -> UOp:
    """A program of one CALL, on buffers of its own in place of its arguments."""
    sizes = {slot_of(v) for v in variables_of(call.src[0])}
    arguments = [
        a if slot in sizes else UOp(Op.BUFFER, dims(a.shape), arg=BufferArg(slot, a.dtype))
        for slot, a in enumerate(call.src[1:])
    ]
    return UOp(Op.SINK, UOp(Op.CALL, call.src[0], *arguments))


def first_stage(root: UOp, target: Target) -> str:
    """The stage at which a kernel program enters; UnsupportedError if it has no input form."""
    known = {Op.CALL, Op.FUNCTION, Op.TUPLE, Op.CUSTOMFUNCTION}
    known = known.union(*(form.ops | form.around for form in FORMS.values()))
    for u in root.toposort():
        if u.op not in known:
            raise UnsupportedError(f"the compiler takes no kernel with {u.op.name}")
    reasons: dict[str, str] = {}
    is_dependent = False
    for form, stage in FORMS_THAT_ENTER:
        try:
            verify(root, form)
        except PassError as error:
            reasons[form.stage] = str(error)
            continue
        if form is LINEARIZED and not all(
            has_vector(target, u) for body in kernels(root) for u in body.src
        ):
            continue
        if form in PARALLEL and not all(map(_is_parallel, kernel_calls(root))):
            is_dependent = True
            continue
        if form is BY_ITEMS and not all(map(_is_in_every_item, kernel_calls(root))):
            is_dependent = True
            continue
        if form in (LINEARIZED, LISTED):
            for body in kernels(root):
                _check_target(body, target)
        return stage
    if is_dependent:
        raise RefusedError("a kernel whose work items, or copies of a loop, may be dependent")
    near = _nearest(kernels(root))
    raise UnsupportedError(f"a kernel in no form that the compiler takes: {reasons[near.stage]}")


def _nearest(bodies: Sequence[UOp]) -> Form:
    """The form that kernels come closest to: the first one that has their RANGEs."""
    order = [u for body in bodies for u in body.toposort()]
    if any(u.op is Op.LINEAR for u in order):
        return LISTED
    types = {type_of(u) for u in order if u.op is Op.RANGE}
    near = ONE_BY_ONE if any(u.op is Op.SPECIAL for u in order) else RANGED
    return next((form for form in (near, BY_ITEMS) if types <= form.axis_types), OPTIMIZED)


def fits_one_launch(call: UOp) -> bool:
    """Whether the work items of a kernel run all of it, or need no order among its loops."""
    has_items = any(u.op is Op.END and is_work_item(u.src[1]) for u in call.src[0].toposort())
    return not has_items or _is_in_every_item(call) or _is_parallel(call)


def _is_parallel(call: UOp) -> bool:
    """Whether no iteration of the outer loops depends on another one, so that they may become work
    items.

    There is one nest. It reads from no buffer that it stores to. It stores to each buffer once;
    more often only where all its iterations are work items already, or where the elements differ.
    All items of a group write to its LOCAL memory.
    """
    order = call.src[0].toposort()
    effect = call.src[0].src[0] if len(call.src[0].src) == 1 else call.src[0]
    while effect.op is Op.END:
        effect = effect.src[0]
    innermost = effect.src if effect.op is Op.GROUP else (effect,)
    inside = open_ranges(order)
    items = (r for r in inside if r.op is Op.RANGE and type_of(r) in ITEMS)
    several = {r for r in items if int_value(r.src[0]) != 1}
    ended = [u.src[1] for u in order if u.op is Op.END and not is_work_item(u.src[1])]
    written = [u for u in order if u.op is Op.STORE]
    stores = [u for u in written if u.src[0].addrspace is not AddrSpace.LOCAL]
    stored = {accessed(u, call) for u in stores}
    return (
        set(innermost) == set(stores)
        and all(is_size(u.src[0]) for u in order if u.op is Op.RANGE)
        and (not ended or len(stored) == len(stores) or _are_apart(stores, ended))
        and not any(u.op is Op.LOAD and accessed(u, call) in stored for u in order)
        and all(several <= inside[u] for u in written if u not in stores)
    )


def _are_apart(stores: Sequence[UOp], loops: Sequence[UOp]) -> bool:
    """Whether no two STOREs of a work item write the same element, in any iterations of its loops.

    Their indices decide: each must be a sum of multiples of these loops and of a part that all
    share.
    """
    counts = [int_value(r.src[0]) for r in loops]
    written: set[int] = set()
    in_common: set[tuple[UOp, frozenset[tuple[UOp, int]]]] = set()
    sizes = [n or 0 for n in counts]
    if None in counts or prod(sizes) * len(stores) > MOST_ELEMENTS:
        return False
    for u in stores:
        terms, offset = linear_form(u.src[0].src[1])
        rest = {t: n for t, n in terms.items() if t not in loops}
        if not set(loops).isdisjoint(v for t in rest for v in t.toposort()):
            return False
        in_common.add((base_of(u.src[0]), frozenset(rest.items())))
        steps = [terms.get(r, 0) for r in loops]
        for at in product(*map(range, sizes)):
            written.add(offset + sum(map(mul, steps, at)))
    return len(in_common) == 1 and len(written) == prod(sizes) * len(stores)


def _is_in_every_item(call: UOp) -> bool:
    """Whether the loops over work items are one nest around every effect. An effect outside one of
    them must not run in each of its items.
    """
    order = call.src[0].toposort()
    inside = open_ranges(order)
    counted = {u.src[1] for u in order if u.op is Op.END and is_work_item(u.src[1])}
    effects = [u for u in order if u.declaration.is_write]
    opaque = (u for u in order if u.op in (Op.BARRIER, Op.INS, Op.CUSTOM))
    effects += [u for u in opaque if u.dtype is dtypes.void]
    if shared_folds(order) and any(u.op is not Op.STORE for u in effects):
        return False
    return all(counted <= inside[u] for u in effects)


def _check_target(body: UOp, target: Target) -> None:
    for u in body.src:
        if u.op is Op.WMMA:
            target.check_matrix(u)
        if u.op is Op.REDUCE and len(u.src) > 1:
            raise UnsupportedError("a LINEAR with a REDUCE over RANGEs, which are its loops")
        if u.op in ELEMENTWISE and not has(target, u):
            raise UnsupportedError(
                f"a LINEAR with {u.op.name} on {u.src[0].dtype.name}: "
                f"{target.name} has no such instruction"
            )
