"""The stage at which a kernel program enters, by the form that it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from uop.compiler.stages.entry.nests import is_in_every_item, is_parallel
from uop.compiler.stages.select.stage import check_instructions, has_vector
from uop.compiler.stages.stage import Setting
from uop.spec.args import RangeArg, arg_of
from uop.spec.errors import PassError, RefusedError, UnsupportedError
from uop.spec.graph import kernel_calls, kernels, outside
from uop.spec.kernel import forms
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

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


def first_stage(root: UOp, setting: Setting) -> str:
    """The stage at which a kernel program enters; UnsupportedError if it has no input form, and for
    optimizations if it enters after `optimize`.
    """
    bodies = kernels(root)
    reasons: dict[str, str] = {}
    is_dependent = False
    for form, stage, is_independent in FORMS_THAT_ENTER:
        try:
            forms.verify(root, form)
        except PassError as error:
            reasons[form.stage] = str(error)
            continue
        if form is forms.LINEARIZED and not all(
            has_vector(setting.target, u) for body in bodies for u in body.src
        ):
            continue
        if is_independent and not all(map(is_independent, kernel_calls(root))):
            is_dependent = True
            continue
        if form in (forms.LINEARIZED, forms.LISTED):
            for body in bodies:
                check_instructions(body, setting.target)
        if setting.optimizations and stage != "optimize":
            what = "optimizations of a program that enters after optimize"
            raise UnsupportedError(f"{what}, at {stage}")
        return stage
    if is_dependent:
        raise RefusedError("a kernel whose work items, or copies of a loop, may be dependent")
    raise _refused(root, reasons)


def _refused(root: UOp, reasons: Mapping[str, str]) -> UnsupportedError:
    """The error for kernels in no input form; `reasons` say why by form."""
    order = [u for body in kernels(root) for u in body.toposort()]
    known = {Op.CALL, Op.FUNCTION}.union(*(f.ops | f.around for f in forms.FORMS.values()))
    for u in (*outside(root), *order):
        if u.op not in known:
            return UnsupportedError(f"the compiler takes no kernel with {u.op.name}")
    reason = reasons[_nearest(order).stage]
    return UnsupportedError(f"a kernel in no form that the compiler takes: {reason}")


def _nearest(order: Sequence[UOp]) -> forms.Form:
    """The form that kernels come closest to: the first one that has their RANGEs."""
    if any(u.op is Op.LINEAR for u in order):
        return forms.LISTED
    types = {arg_of(u, RangeArg).axis_type for u in order if u.op is Op.RANGE}
    near = forms.ONE_BY_ONE if any(u.op is Op.SPECIAL for u in order) else forms.RANGED
    fitting = (form for form in (near, forms.BY_ITEMS) if types <= form.axis_types)
    return next(fitting, forms.OPTIMIZED)
