"""Steps of a program, and the PARAMs that stand for the versions of buffers (in callify)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from uop.spec.args import AddrSpace, BufferArg, ParamArg, arg_of
from uop.spec.graph import slot_of
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import is_variable
from uop.spec.uop import UOp


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A FUNCTION of a TUPLE, or a CALL of a kernel, on versions of buffers."""

    body: UOp
    """Its PARAMs are the arguments by position."""
    arguments: tuple[UOp, ...]
    """Versions; for a CALL buffers, whose last versions it takes, BINARYs and values in memory."""
    targets: Mapping[UOp, UOp]
    """The version that it makes of each buffer that it writes; in the order of a TUPLE."""

    @property
    def is_call(self) -> bool:
        return self.body.op is not Op.TUPLE


def placeholder(leaf: UOp, slot: int | None = None, space: AddrSpace | None = None) -> UOp:
    """The PARAM of a buffer's contents, or of its memory, by default in its own slot."""
    arg = arg_of(leaf, ParamArg, BufferArg)
    held = ParamArg(arg.slot if slot is None else slot, arg.dtype, arg.device, space)
    if isinstance(arg, ParamArg):
        held = replace(held, min=arg.min, max=arg.max)
    return UOp(Op.PARAM, *leaf.src, arg=held)


def called(values: Iterable[UOp]) -> tuple[UOp, tuple[UOp, ...]]:
    """The body of a FUNCTION that computes values, and its arguments: the versions they read."""
    body = UOp(Op.TUPLE, *values)
    read = sorted({u for u in body.toposort() if u.op is Op.PARAM}, key=_slot_and_space)
    numbered: dict[UOp, UOp] = {}
    # The variables first, since sizes are computed from them.
    for version in sorted(read, key=is_variable, reverse=True):
        own = placeholder(version, read.index(version), version.addrspace)
        numbered[version] = own.with_src(s.substitute(numbered) for s in own.src)
    return body.substitute(numbered), tuple(read)


def _slot_and_space(u: UOp) -> tuple[int, bool]:
    return slot_of(u), u.addrspace is not None
