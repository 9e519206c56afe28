"""Kernel programs as input of the compiler: finds the stage at which they enter."""

from __future__ import annotations

from uop.compiler.stages.select import has
from uop.compiler.targets.target import Target
from uop.spec.errors import PassError, UnsupportedError
from uop.spec.graph import accessed, calls
from uop.spec.kernel.forms import (
    ELEMENTWISE,
    EXPANDED,
    FORMS,
    LINEARIZED,
    LISTED,
    ONE_BY_ONE,
    OPTIMIZED,
    RANGED,
    Form,
    verify,
)
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

FORMS_THAT_ENTER: tuple[tuple[Form, str], ...] = (
    (RANGED, "optimize"),
    (EXPANDED, "select"),
    (OPTIMIZED, "expand"),
    (ONE_BY_ONE, "select"),
    (LINEARIZED, "plan"),
    (LISTED, "linearize"),
)
"""The input forms of kernel programs, each with the first stage that it needs."""
PARALLEL = (RANGED, EXPANDED, OPTIMIZED)
"""The forms whose outer loops become work items or copies."""
KNOWN = frozenset[Op]().union(*(form.ops | form.around for form in FORMS.values())) | {
    Op.CALL, Op.FUNCTION, Op.TUPLE,
}  # fmt: skip


def without_binaries(root: UOp) -> UOp:
    """Replace each PROGRAM by the LINEAR that it was rendered from."""
    bodies = {call.src[0] for call in calls(root)}
    return root.substitute({body: body.src[0] for body in bodies if body.op is Op.PROGRAM})


def first_stage(root: UOp, target: Target) -> str:
    """The stage at which a kernel program enters; UnsupportedError if it has no input form."""
    for u in root.toposort():
        if u.op not in KNOWN:
            raise UnsupportedError(f"the compiler takes no kernel with {u.op.name}")
    reasons: dict[str, str] = {}
    is_dependent = False
    for form, stage in FORMS_THAT_ENTER:
        try:
            verify(root, form)
        except PassError as error:
            reasons[form.stage] = str(error)
            continue
        if form in PARALLEL and not all(map(_is_parallel, calls(root))):
            is_dependent = True
            continue
        if form in (LINEARIZED, LISTED):
            for call in calls(root):
                _check_target(call.src[0], target)
        return stage
    if any(u.op is Op.WMMA for u in root.toposort()):
        raise UnsupportedError("the compiler takes no kernel with WMMA")
    if is_dependent:
        raise UnsupportedError("a kernel whose work items, or copies of a loop, may be dependent")
    body = calls(root)[0].src[0]
    near = LISTED if body.op is Op.LINEAR else ONE_BY_ONE if _has_work_items(body) else RANGED
    raise UnsupportedError(f"a kernel in no form that the compiler takes: {reasons[near.stage]}")


def _is_parallel(call: UOp) -> bool:
    """Whether no iteration of the outer loops depends on another one, so that they may become work
    items: one nest, which stores to each buffer once, and reads from none of these.
    """
    order = call.src[0].toposort()
    effect = call.src[0].src[0] if len(call.src[0].src) == 1 else call.src[0]
    while effect.op is Op.END:
        effect = effect.src[0]
    innermost = effect.src if effect.op is Op.GROUP else (effect,)
    stores = [u for u in order if u.op is Op.STORE]
    stored = {accessed(u, call) for u in stores}
    return (
        set(innermost) == set(stores)
        and len(stored) == len(stores)
        and all(u.src[0].op is Op.CONST for u in order if u.op is Op.RANGE)
        and not any(u.op is Op.LOAD and accessed(u, call) in stored for u in order)
    )


def _check_target(body: UOp, target: Target) -> None:
    for u in body.src:
        if u.op in ELEMENTWISE and not has(target, u):
            raise UnsupportedError(
                f"a LINEAR with {u.op.name} on {u.src[0].dtype.name}: "
                f"{target.name} has no such instruction"
            )


def _has_work_items(body: UOp) -> bool:
    return any(u.op is Op.SPECIAL for u in body.toposort())
