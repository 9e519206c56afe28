"""Copies from global to LOCAL memory that the device does on its own (in render).

A work item begins them, and waits for its own before the barrier behind which they are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from math import prod

from uop.spec.args import AddrSpace
from uop.spec.dtype import dtypes
from uop.spec.graph import WRITES, base_of
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

BYTES = (4, 8, 16)
"""The sizes of such a copy."""


def copies(linear: UOp, block: Mapping[UOp, int]) -> dict[UOp, UOp]:
    """The STOREs to LOCAL memory of what a LOAD reads for them alone, each with its LOAD: all that
    a kernel writes to that memory is such a copy, and what it reads there is behind a BARRIER that
    is behind all of them.
    """
    users = Counter(s for u in linear.src for s in u.src)
    written = {base_of(u.src[0]) for u in linear.src if u.op in WRITES}
    found: dict[UOp, dict[UOp, UOp]] = {}
    others: set[UOp] = set()
    reads: list[UOp] = []
    for u in linear.src:
        if u.op not in (*WRITES, Op.LOAD, Op.GETADDR) or u.src[0].addrspace is not AddrSpace.LOCAL:
            continue
        if u.op is Op.LOAD:
            reads.append(u)
        elif _is_copy(u, written) and users[u.src[1]] == 1 and block[u] == block[u.src[1]]:
            found.setdefault(base_of(u.src[0]), {})[u] = u.src[1]
        else:
            others.add(base_of(u.src[0]))
    for u in reads:
        memory = base_of(u.src[0])
        barriers = (s for s in u.src[0].src[0].src[1:] if s.op is Op.BARRIER)
        if not found.get(memory, {}).keys() <= {v for s in barriers for v in s.toposort()}:
            others.add(memory)
    return {u: v for memory, each in found.items() if memory not in others for u, v in each.items()}


def _is_copy(u: UOp, written: AbstractSet[UOp]) -> bool:
    """Whether it writes what a LOAD reads, without gates, from memory that the kernel leaves."""
    if u.op is not Op.STORE or len(u.src) > 2 or u.src[1].op is not Op.LOAD:
        return False
    value, place = u.src[1], u.src[1].src[0]
    is_plain = len(value.src) == 1 and value.dtype is not dtypes.bool
    is_left = place.addrspace is AddrSpace.GLOBAL and base_of(place) not in written
    size = prod(value.shape) * value.dtype.itemsize
    return is_plain and is_left and place.shape == u.src[0].shape and size in BYTES
