"""Rewrites that run before the stages: a program gets the ops and forms that they take."""

from __future__ import annotations

from collections.abc import Callable

from uop.compiler.kernels import fits_one_launch
from uop.compiler.rewriting.rewrite import RuleSet, rewrite, rewrites
from uop.compiler.stages.entry.flat import flatten_memory
from uop.compiler.stages.entry.nests import split_nests
from uop.compiler.stages.entry.scalars import scalarize_graphs
from uop.compiler.stages.select.launch import IN_WARP
from uop.spec.extension import in_core_ops
from uop.spec.graph import ProgramKind, kernel_calls, kernels, kind_of
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import is_variable, with_bound_variables
from uop.spec.uop import UOp, checked_root


def to_core_ops(root: UOp) -> UOp:
    """A program in core ops and MIN. A BIND becomes its number, and variables lose their names."""
    named = [u for u in checked_root(root).toposort() if is_variable(u) and u.tag is not None]
    unnamed = root.substitute({v: UOp(Op.PARAM, *v.src, arg=v.arg) for v in named})
    # Stages take these; select decomposes MIN for a target without it.
    return in_core_ops(with_bound_variables(unnamed), frozenset({Op.MIN, Op.REDUCE}))


def enter(root: UOp, linear: Callable[[UOp], UOp]) -> UOp:
    """The program that the stages see: a LINEAR for each PROGRAM, flat memory in kernels, a kernel
    for each group of STOREs with work items of their own, and no vectors in graphs.

    In a program that also has ops on whole tensors, `linear` makes a LINEAR of the kernel of each
    CALL: such a program begins at the first stage.
    """
    root = rewrite(root, ENTERED) if any(u.tag == IN_WARP for u in root.toposort()) else root
    root = split_nests(flatten_memory(_without_binaries(root)), fits_one_launch)
    root = scalarize_graphs(_with_constants(root))
    if kind_of(root) is not ProgramKind.MIXED:
        return root
    bodies = {call.src[0]: call for call in kernel_calls(root)}
    return root.substitute({body: linear(call) for body, call in bodies.items()})


@rewrites(Op.BARRIER)
def wait_for_the_group(u: UOp) -> UOp | None:
    """Drop the tag of a BARRIER: in an input program no tag says which items wait."""
    return UOp(Op.BARRIER, *u.src) if u.tag == IN_WARP else None


ENTERED = RuleSet(wait_for_the_group)


def _without_binaries(root: UOp) -> UOp:
    """Replace each PROGRAM by the LINEAR that it was rendered from."""
    return root.substitute({body: body.src[0] for body in kernels(root) if body.op is Op.PROGRAM})


def _with_constants(root: UOp) -> UOp:
    """List the constants of each LINEAR that leaves some out, before its other instructions."""
    listed: dict[UOp, UOp] = {}
    for body in kernels(root):
        if body.op is Op.LINEAR:
            constants = [u for u in body.toposort() if _is_constant(u)]
            if not frozenset(body.src).issuperset(constants):
                others = (u for u in body.src if not _is_constant(u))
                listed[body] = body.with_src([*constants, *others])
    return root.substitute(listed)


def _is_constant(u: UOp) -> bool:
    return u.op is Op.CONST or (u.op is Op.STACK and all(s.op is Op.CONST for s in u.src))
