"""Before the stages: a program gets the ops and forms that they take."""

from __future__ import annotations

from dataclasses import dataclass

from uop.compiler.stages.entry.nests import split_nests
from uop.compiler.stages.entry.scalars import flatten_memory, scalarize_graph
from uop.compiler.stages.select.launch import IN_WARP
from uop.spec.args import BufferArg
from uop.spec.extension import in_core_ops
from uop.spec.graph import (
    devices_of,
    free_params,
    kind_of,
    rebuild,
    slot_of,
    with_calls,
    with_kernels,
)
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import is_variable, with_bound_variables
from uop.spec.uop import UOp, checked_root, dims, index_const


def to_core_ops(root: UOp) -> UOp:
    """A program in core ops and MIN. A BIND becomes its number, and variables lose their names."""
    named = [u for u in checked_root(root).toposort() if is_variable(u) and u.tag is not None]
    unnamed = root.substitute({v: UOp(Op.PARAM, *v.src, arg=v.arg) for v in named})
    # Stages take these; select decomposes MIN for a target without it.
    return in_core_ops(with_bound_variables(unnamed), frozenset({Op.MIN, Op.REDUCE}))


@dataclass(frozen=True, slots=True)
class Entry:
    """A program as it enters the stages, and the names of its devices."""

    program: UOp
    calls_kernels: bool
    """Whether it consists of kernels alone."""
    devices: tuple[str, ...] = ()


def enter(root: UOp) -> Entry:
    """The program that the stages see: a LINEAR for each PROGRAM, flat memory in kernels, a kernel
    for each group of STOREs with work items of their own, and no vectors in graphs.
    """
    flat = with_calls(with_kernels(root, _flattened), split_nests)
    program = with_kernels(flat, lambda body: scalarize_graph(_with_constants(body)))
    return Entry(program, kind_of(program).calls_kernels, devices_of(program))


def alone(body: UOp) -> UOp:
    """A program of one CALL of a kernel, on buffers of its own."""
    used = {slot_of(p): p for p in free_params(body)}
    arguments = [index_const(0)] * (1 + max(used, default=-1))
    for slot, p in used.items():
        buffer = UOp(Op.BUFFER, dims(p.shape), arg=BufferArg(slot, p.dtype))
        arguments[slot] = p if is_variable(p) else buffer
    return UOp(Op.SINK, UOp(Op.CALL, body, *arguments))


def _flattened(body: UOp) -> UOp:
    # A PROGRAM was rendered from a LINEAR.
    body = body.src[0] if body.op is Op.PROGRAM else body
    if any(u.tag == IN_WARP for u in body.toposort()):
        # In an input program no tag says which items wait at a BARRIER: all of the group.
        body = rebuild(body, _without_tag)
    return flatten_memory(body)


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
