"""Before the stages: a program gets the ops and forms that they take, and a stage to enter at."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from uop.compiler.loops import type_of
from uop.compiler.stages.entry.nests import is_in_every_item, is_parallel, split_nests
from uop.compiler.stages.entry.scalars import flatten_memory, scalarize_graph
from uop.compiler.stages.select.launch import IN_WARP
from uop.compiler.stages.select.stage import has, has_vector
from uop.compiler.targets.target import Target
from uop.spec.args import BufferArg
from uop.spec.errors import PassError, RefusedError, UnsupportedError
from uop.spec.extension import in_core_ops
from uop.spec.graph import kernel_calls, kernels, rebuild, slot_of, with_kernels
from uop.spec.kernel import forms
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import is_variable, variables_of, with_bound_variables
from uop.spec.uop import UOp, checked_root, dims


def to_core_ops(root: UOp) -> UOp:
    """A program in core ops and MIN. A BIND becomes its number, and variables lose their names."""
    named = [u for u in checked_root(root).toposort() if is_variable(u) and u.tag is not None]
    unnamed = root.substitute({v: UOp(Op.PARAM, *v.src, arg=v.arg) for v in named})
    # Stages take these; select decomposes MIN for a target without it.
    return in_core_ops(with_bound_variables(unnamed), frozenset({Op.MIN, Op.REDUCE}))


def enter(root: UOp) -> UOp:
    """The program that the stages see: a LINEAR for each PROGRAM, flat memory in kernels, a kernel
    for each group of STOREs with work items of their own, and no vectors in graphs.
    """
    if any(u.tag == IN_WARP for u in root.toposort()):
        # In an input program no tag says which items wait at a BARRIER: all of the group.
        root = rebuild(root, _without_tag)
    # A PROGRAM was rendered from a LINEAR.
    root = with_kernels(root, lambda body: body.src[0] if body.op is Op.PROGRAM else body)
    root = split_nests(flatten_memory(root))
    return with_kernels(root, lambda body: scalarize_graph(_with_constants(body)))


def _without_tag(u: UOp, src: list[UOp]) -> UOp:
    is_tagged = u.op is Op.BARRIER and u.tag == IN_WARP
    return UOp(Op.BARRIER, *src) if is_tagged else u.with_src(src)


def _with_constants(body: UOp) -> UOp:
    """List the constants of a LINEAR that leaves some out, before its other instructions."""
    constants = [u for u in body.toposort() if _is_constant(u)] if body.op is Op.LINEAR else []
    if frozenset(body.src).issuperset(constants):
        return body
    return body.with_src([*constants, *(u for u in body.src if not _is_constant(u))])


def _is_constant(u: UOp) -> bool:
    return u.op is Op.CONST or (u.op is Op.STACK and all(s.op is Op.CONST for s in u.src))


FORMS_THAT_ENTER: tuple[tuple[forms.Form, str, Callable[[UOp], bool] | None], ...] = (
    (forms.RANGED, "optimize", is_parallel),
    (forms.EXPANDED, "select", is_parallel),
    (forms.OPTIMIZED, "expand", is_parallel),
    (forms.ONE_BY_ONE, "select", None),
    (forms.BY_ITEMS, "select", is_in_every_item),
    (forms.LINEARIZED, "plan", None),
    (forms.LISTED, "linearize", None),
)
"""The input forms of kernel programs, each with the first stage that it needs, and with the
condition under which the loops of the kernel of a CALL may become work items or copies.
"""


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
    known = known.union(*(form.ops | form.around for form in forms.FORMS.values()))
    for u in root.toposort():
        if u.op not in known:
            raise UnsupportedError(f"the compiler takes no kernel with {u.op.name}")
    reasons: dict[str, str] = {}
    is_dependent = False
    for form, stage, is_independent in FORMS_THAT_ENTER:
        try:
            forms.verify(root, form)
        except PassError as error:
            reasons[form.stage] = str(error)
            continue
        if form is forms.LINEARIZED and not all(
            has_vector(target, u) for body in kernels(root) for u in body.src
        ):
            continue
        if is_independent and not all(map(is_independent, kernel_calls(root))):
            is_dependent = True
            continue
        if form in (forms.LINEARIZED, forms.LISTED):
            for body in kernels(root):
                _check_target(body, target)
        return stage
    if is_dependent:
        raise RefusedError("a kernel whose work items, or copies of a loop, may be dependent")
    near = _nearest(kernels(root))
    raise UnsupportedError(f"a kernel in no form that the compiler takes: {reasons[near.stage]}")


def _nearest(bodies: Sequence[UOp]) -> forms.Form:
    """The form that kernels come closest to: the first one that has their RANGEs."""
    order = [u for body in bodies for u in body.toposort()]
    if any(u.op is Op.LINEAR for u in order):
        return forms.LISTED
    types = {type_of(u) for u in order if u.op is Op.RANGE}
    near = forms.ONE_BY_ONE if any(u.op is Op.SPECIAL for u in order) else forms.RANGED
    fitting = (form for form in (near, forms.BY_ITEMS) if types <= form.axis_types)
    return next(fitting, forms.OPTIMIZED)


def _check_target(body: UOp, target: Target) -> None:
    for u in body.src:
        if u.op is Op.WMMA:
            target.check_matrix(u)
        if u.op is Op.REDUCE and len(u.src) > 1:
            raise UnsupportedError("a LINEAR with a REDUCE over RANGEs, which are its loops")
        if u.op in forms.ELEMENTWISE and not has(target, u):
            raise UnsupportedError(
                f"a LINEAR with {u.op.name} on {u.src[0].dtype.name}: "
                f"{target.name} has no such instruction"
            )
