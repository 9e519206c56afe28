"""The stage select: rewrites kernels to ops that the target has.

A REDUCE becomes a loop over registers, parallel RANGEs become work items, expanded values become
vectors of the target and scalars, ops that the target lacks are decomposed, and arithmetic on an
emulated dtype is done in a wider one and rounded back at every node.
"""

from __future__ import annotations

from functools import cache

from uop.compiler.build import as_dtype, counting
from uop.compiler.rewriting.patterns import int_value
from uop.compiler.rewriting.rewrite import Fired, Rewriter, Rule, RuleSet, rewrites, unobserved
from uop.compiler.rewriting.simplify import SIMPLIFY
from uop.compiler.stages.optimize.local import in_registers, in_two_parts
from uop.compiler.stages.select.launch import launched
from uop.compiler.stages.select.vectors import in_vectors, with_neighbours
from uop.compiler.stages.stage import Stage
from uop.compiler.targets.target import COPIES, Target
from uop.spec.args import AddrSpace
from uop.spec.errors import IncompleteError, UnsupportedError
from uop.spec.graph import with_kernels
from uop.spec.kernel.forms import ELEMENTWISE, SELECTED, BodyNodes, Form, Invariant
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

OF_BODIES = (
    RANGES_INTO_WORK_ITEMS := "ranges_into_work_items",
    VALUES_INTO_VECTORS := "values_into_vectors",
    NEIGHBOURS_INTO_VECTORS := "neighbours_into_vectors",
)
"""The names of the rules that rewrite whole kernels."""
SPELLING = "a spelling for {}, in compiler/targets/, or else a decomposition in its declaration"


def select(root: UOp, target: Target, fired: Fired = unobserved) -> UOp:
    """Rewrite the kernels for a target."""
    rewriter = Rewriter(rules_for(target), fired)

    def changed(rule: str, before: UOp, after: UOp) -> UOp:
        if after is not before:
            fired(rule, before, after)
        return after

    def selected(body: UOp) -> UOp:
        for u in body.toposort():
            if u.op is Op.WMMA:
                target.check_matrix(u)
        items = launched(in_registers(body), target.warp)
        scalars = rewriter(changed(RANGES_INTO_WORK_ITEMS, body, items))
        # Tiles that take turns are right in a loop alone, as vectors make it of a fold.
        vectors = in_vectors(in_two_parts(scalars), target, rewriter)
        changed(VALUES_INTO_VECTORS, scalars, vectors)
        return changed(NEIGHBOURS_INTO_VECTORS, vectors, with_neighbours(vectors, target))

    return with_kernels(root, selected)


@cache
def selected_for(target: Target) -> Form:
    """The output form of select for a target; IncompleteError for an op without a spelling."""

    def lacking(nodes: BodyNodes) -> UOp | None:
        for u in nodes.order:
            if not has_vector(target, u):
                return u
            if u.op in ELEMENTWISE and not has(target, u):
                if u.op not in target.ops and u.decompose() is None:
                    raise IncompleteError(u.op.name, SPELLING.format(target.name))
                return u
        return None

    return SELECTED.with_invariants(
        Invariant("target", f"{target.name} has every op on its dtypes", lacking)
    )


def has(target: Target, u: UOp) -> bool:
    """Whether a target has an elementwise op on its dtypes."""
    if not _spells(target, u.op):
        return False
    return u.op in COPIES or all(target.computes_as(s.dtype) is s.dtype for s in u.src)


def _spells(target: Target, op: Op) -> bool:
    """Whether a target may write an op: not MULACC, whose two roundings a compiler might join."""
    return op in target.ops and op is not Op.MULACC


def has_vector(target: Target, u: UOp) -> bool:
    """Whether a node is a scalar, or a vector that a target has."""
    if u.addrspace is not None:
        memory, index = u.src[0], u.src[-1]
        is_register = memory.addrspace is AddrSpace.REG and index is counting(memory.shape[0])
        return u.op is not Op.INDEX or not u.shape or is_register or _counts(index)
    if u.op in (Op.LOAD, Op.STORE) and u.src[0].shape:
        widths = target.vectors.widths if target.vectors else ()
        return target.has_vector(u) and u.src[0].shape[0] in widths
    if u.op is Op.INDEX:
        return int_value(u.src[1]) is not None
    if u.op in ELEMENTWISE or u.op is Op.BITCAST:
        return not u.shape or _counts(u) or target.has_vector(u)
    return not u.shape or u.op in (Op.STACK, Op.WMMA)


def _counts(index: UOp) -> bool:
    """Whether indices count up by 1: the first one added to 0, 1, ..."""
    return index.op is Op.ADD and index.src[1] is counting(index.shape[0])


def check_instructions(body: UOp, target: Target) -> None:
    """UnsupportedError for an instruction of a LINEAR that a target lacks."""
    for u in body.src:
        if u.op is Op.REDUCE and len(u.src) > 1:
            raise UnsupportedError("a LINEAR with a REDUCE over RANGEs, which are its loops")
        if u.op in ELEMENTWISE and not has(target, u):
            raise UnsupportedError(
                f"a LINEAR with {u.op.name} on {u.src[0].dtype.name}: "
                f"{target.name} has no such instruction"
            )
        if u.op is Op.WMMA:
            target.check_matrix(u)


@cache
def rules_for(target: Target) -> RuleSet:
    """The rules of select for a target."""
    lacking = tuple(op for op in ELEMENTWISE if not _spells(target, op))
    computed = tuple(op for op in ELEMENTWISE if op not in COPIES)

    @rewrites(*lacking)
    def decompose(u: UOp) -> UOp | None:
        """Decompose an op that the target lacks."""
        return u.decompose()

    @rewrites(*computed)
    def emulate(u: UOp) -> UOp | None:
        """Arithmetic on an emulated dtype: widen, compute, round back, at every node."""
        if all(target.computes_as(s.dtype) is s.dtype for s in u.src):
            return None
        wide = (as_dtype(s, target.computes_as(s.dtype)) for s in u.src)
        result = UOp(u.op, *wide, arg=u.arg)
        return as_dtype(result, u.dtype)

    rules: list[Rule] = [decompose, emulate] if lacking else [emulate]
    return RuleSet(*rules) + SIMPLIFY


STAGE = Stage(
    "select",
    lambda u, setting, fired: select(u, setting.target, fired),
    lambda setting: selected_for(setting.target),
    lambda target: (*OF_BODIES, *rules_for(target).names),
)
