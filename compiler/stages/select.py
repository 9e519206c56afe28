"""The stage select: rewrites kernels to ops that the target has.

A REDUCE becomes a loop over a register, parallel RANGEs become work items, ops that the target
lacks are decomposed, and arithmetic on an emulated dtype is done in a wider one and rounded back at
every node.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from uop.compiler.rewrite import Fired, Rewriter, Rule, RuleSet, quietly, rewrites
from uop.compiler.simplify import SIMPLIFY
from uop.compiler.stages.launch import launched
from uop.compiler.stages.optimize.axes import id_of
from uop.compiler.targets.target import COPIES, Target
from uop.compiler.validity import identity
from uop.spec.args import AddrSpace, BufferArg, DTypeArg, ReduceArg, arg_of
from uop.spec.errors import IncompleteError
from uop.spec.graph import kernels
from uop.spec.kernel.forms import ELEMENTWISE, SELECTED, BodyNodes, Form, Invariant, open_ranges
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, dims, index_const

SPELLING = "a spelling for {}, in compiler/targets/, or else a decomposition in its declaration"
ROUNDED_TWICE = (Op.MULACC,)
"""Ops with several roundings, which a device compiler might contract in one expression."""


def select(root: UOp, target: Target, fired: Fired = quietly) -> UOp:
    """Rewrite the kernels for a target."""
    rewriter = Rewriter(rules_for(target), fired)
    bodies: dict[UOp, UOp] = {}
    for body in kernels(root):
        bodies[body] = rewriter(_looped(launched(body)))
    return root.substitute(bodies)


@cache
def selected_for(target: Target) -> Form:
    """The output form of select for a target; IncompleteError for an op without a spelling."""

    def lacking(nodes: BodyNodes) -> UOp | None:
        for u in nodes.order:
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
    if u.op not in target.ops or u.op in ROUNDED_TWICE:
        return False
    return u.op in COPIES or all(target.computes_as(s.dtype) is s.dtype for s in u.src)


def _looped(body: UOp) -> UOp:
    """Make each REDUCE a loop that folds into a register."""
    order = body.toposort()
    if not any(u.op is Op.REDUCE for u in order):
        return body
    inside = open_ranges(order)
    new: dict[UOp, UOp] = {}
    registers = 0
    for u in order:
        src = [new[s] for s in u.src]
        if u.op is Op.REDUCE:
            around = [new[r] for r in sorted(inside[u], key=id_of)]
            new[u] = _accumulated(u, src, around, registers)
            registers += 1
        else:
            new[u] = u.with_src(src)
    return new[body]


def _accumulated(u: UOp, src: Sequence[UOp], around: Sequence[UOp], slot: int) -> UOp:
    """The register after the loops, the first RANGE outermost; it is initialised inside the loops
    around them.
    """
    value, *ranges = src
    op, zero = arg_of(u, ReduceArg).op, index_const(0)
    register = UOp(Op.BUFFER, dims((1,)), arg=BufferArg(slot, u.dtype, None, AddrSpace.REG))
    fresh = UOp(Op.AFTER, register, *around) if around else register
    start = UOp(Op.STORE, UOp(Op.INDEX, fresh, zero), identity(op, u.dtype))
    element = UOp(Op.INDEX, UOp(Op.AFTER, register, start, *ranges), zero)
    effect = UOp(Op.STORE, element, UOp(op, UOp(Op.LOAD, element), value))
    for r in reversed(ranges):
        effect = UOp(Op.END, effect, r)
    # A loop of no iterations runs nothing in it, not even the start.
    counted = all(r.src[0].op is Op.CONST for r in ranges)
    done = (effect,) if counted else (start, effect)
    return UOp(Op.LOAD, UOp(Op.INDEX, UOp(Op.AFTER, register, *done), zero))


@cache
def rules_for(target: Target) -> RuleSet:
    """The rules of select for a target."""
    lacking = tuple(op for op in ELEMENTWISE if op not in target.ops or op in ROUNDED_TWICE)
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
        wide = [
            UOp(Op.CAST, s, arg=DTypeArg(target.computes_as(s.dtype)))
            if target.computes_as(s.dtype) is not s.dtype
            else s
            for s in u.src
        ]
        result = UOp(u.op, *wide, arg=u.arg)
        return result if result.dtype is u.dtype else UOp(Op.CAST, result, arg=DTypeArg(u.dtype))

    rules: list[Rule] = [decompose, emulate] if lacking else [emulate]
    return RuleSet(*rules) + SIMPLIFY
