"""Translates kernels to the graphs that tinygrad's scheduler passes to its code generator.

tinygrad puts a gate into the index: where it is false, the index is Invalid and accesses nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from uop.conformance.backends.tinygrad_graph import NAMES, RULES, Language, Node
from uop.spec.args import AxisType, ConstArg, RangeArg, ReduceArg, SpecialArg, arg_of
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.graph import base_of, slot_of
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

IN_TENSOR_GRAPHS = (Op.STORE, Op.AFTER, Op.TUPLE, Op.CONTIGUOUS, Op.DETACH)
PLAIN = {op: name for op, name in NAMES.items() if op not in IN_TENSOR_GRAPHS} | {
    op: op.name for op in (Op.END, Op.GROUP)
}
"""The ops of tinygrad's kernels with the same operands and no arg."""

SPELLED = frozenset(
    {
        *(Op.NEG, Op.SUB, Op.DIV, Op.MULACC, Op.NOT, Op.CMPEQ, Op.CMPGT, Op.CMPGE, Op.CMPLE),
        *(Op.CAST, Op.BITCAST, Op.SHL, Op.SHR),
    }
)
AXES = {AxisType.LOOP: "LOOP", AxisType.REDUCE: "REDUCE"}
"""The loops before any optimization."""


class Kernels:
    """The translation of programs of kernels. `work_items` is false where a device has none."""

    def __init__(self, language: Language, codegen: Any, work_items: bool) -> None:
        self.language, self.codegen, self.work_items = language, codegen, work_items
        self.slots: list[int] = []

    def body(self, root: UOp) -> Node:
        """Translate a kernel; its buffers come in the order of `used_slots`.

        UnsupportedError for ops that tinygrad does not pass to its code generator.
        """
        if root.op is not Op.SINK:
            raise UnsupportedError(f"tinygrad is not handed a {root.op.name}")
        self.slots = used_slots(root)
        done: dict[UOp, Node] = {}
        for u in root.toposort()[:-1]:
            done[u] = self._node(u, done)
        info = self.codegen.KernelInfo(opts_to_apply=())
        return self.language.node("SINK", *(done[s] for s in root.src), arg=info)

    def _node(self, u: UOp, done: dict[UOp, Node]) -> Node:
        src = [done[s] for s in u.src]
        if u.op in PLAIN:
            return self.language.node(PLAIN[u.op], *src)
        if u.op in SPELLED:
            return RULES[u.op](self.language, u, src)
        rule = KERNEL_RULES.get(u.op)
        if rule is None:
            raise UnsupportedError(f"tinygrad's code generator is not handed a {u.op.name}")
        return rule(self, u, src)


def used_slots(body: UOp) -> list[int]:
    """The slots that a body uses: tinygrad numbers the buffers of a kernel without gaps."""
    return sorted({slot_of(u) for u in body.toposort() if u.op is Op.PARAM})


def written_slots(call: UOp) -> list[int]:
    """The arguments of a CALL that its body stores to."""
    stores = (u for u in call.src[0].toposort() if u.op is Op.STORE)
    return sorted({slot_of(base_of(u.src[0])) for u in stores})


def _constant(kernels: Kernels, u: UOp, src: list[Node]) -> Node:
    return kernels.language.constant(arg_of(u, ConstArg))


def _shape(kernels: Kernels, u: UOp, src: list[Node]) -> Node:
    """The shape operand of a PARAM, which tinygrad's PARAM makes itself."""
    if u.dtype is not dtypes.index or any(s.op is not Op.CONST for s in u.src):
        raise UnsupportedError("tinygrad's code generator makes vectors itself")
    return None


def _param(kernels: Kernels, u: UOp, src: list[Node]) -> Node:
    slot = kernels.slots.index(slot_of(u))
    if len(u.shape) != 1 or not u.shape[0]:
        raise UnsupportedError("tinygrad's kernels see flat buffers that are not empty")
    return kernels.language.uop.placeholder(u.shape, kernels.language.dtype(u.dtype), slot)


def _range(kernels: Kernels, u: UOp, src: list[Node]) -> Node:
    arg = arg_of(u, RangeArg)
    if arg.axis_type not in AXES:
        raise UnsupportedError(f"tinygrad decides itself what a {arg.axis_type.name} loop becomes")
    axis = kernels.codegen.AxisType[AXES[arg.axis_type]]
    return kernels.language.node("RANGE", src[0], arg=(arg.id, axis))


def _special(kernels: Kernels, u: UOp, src: list[Node]) -> Node:
    if not kernels.work_items:
        raise UnsupportedError("this device of tinygrad has no work items")
    return kernels.language.node("SPECIAL", src[0], arg=arg_of(u, SpecialArg).name)


def _index(kernels: Kernels, u: UOp, src: list[Node]) -> Node:
    if len(u.src) != 2 or u.src[0].addrspace is None or u.src[1].shape:
        raise UnsupportedError("tinygrad's code generator makes vectors itself")
    return kernels.language.node("INDEX", *src)


def _gated(kernels: Kernels, place: Node, gate: Node) -> Node:
    language = kernels.language
    index = language.node("WHERE", gate, place.src[1], language.uop.invalid())
    return language.node("INDEX", place.src[0], index)


def _load(kernels: Kernels, u: UOp, src: list[Node]) -> Node:
    language = kernels.language
    if len(src) < 3:
        return language.node("LOAD", src[0])
    return language.node(
        "WHERE", src[2], language.node("LOAD", _gated(kernels, src[0], src[2])), src[1]
    )


def _store(kernels: Kernels, u: UOp, src: list[Node]) -> Node:
    place = src[0] if len(src) < 3 else _gated(kernels, src[0], src[2])
    return kernels.language.node("STORE", place, src[1])


def _reduce(kernels: Kernels, u: UOp, src: list[Node]) -> Node:
    arg = arg_of(u, ReduceArg)
    if arg.axes or arg.op is Op.MIN:
        raise UnsupportedError("tinygrad's code generator folds by ADD, MUL and MAX over loops")
    if len(src) == 1:
        return src[0]
    return kernels.language.node("REDUCE", *src, arg=(kernels.language.ops[arg.op.name], 0))


Rule = Callable[[Kernels, UOp, list[Node]], Node]

KERNEL_RULES: dict[Op, Rule] = {
    Op.CONST: _constant,
    Op.STACK: _shape,
    Op.PARAM: _param,
    Op.RANGE: _range,
    Op.SPECIAL: _special,
    Op.INDEX: _index,
    Op.LOAD: _load,
    Op.STORE: _store,
    Op.REDUCE: _reduce,
}
