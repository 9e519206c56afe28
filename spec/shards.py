"""The ops that each of several devices computes on its shards of a program.

A value with an axis is split along it into equal parts, one per device; without one every device
has the whole value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from uop.spec.args import Device, LoadArg, ReduceArg, arg_of
from uop.spec.ops.names import Op
from uop.spec.properties.axis import shards
from uop.spec.uop import UOp, dims

if TYPE_CHECKING:
    from uop.spec.registry import Shape


def local_shape(u: UOp) -> Shape:
    """The shape of the part of a node that one device holds."""
    count = shards(u)
    return tuple(d // count if axis == u.axis else d for axis, d in enumerate(u.shape))


def folds_shards(u: UOp) -> bool:
    """Whether a node is a REDUCE along the shard axis, which needs the shards of all devices."""
    is_split = u.op is Op.REDUCE and shards(u.src[0]) > 1
    return is_split and u.src[0].axis in arg_of(u, ReduceArg).axes


def sources_here(u: UOp, device: Device) -> list[UOp]:
    """The sources of an AFTER or GROUP on a device; for others the STOREs to it below."""
    here = [u.src[0]] if u.op is Op.AFTER else []
    for s in u.src[len(here) :]:
        if s.device is None or s.device == device:
            here.append(s)
        else:
            here += [v for v in s.toposort() if v.op is Op.STORE and v.device == device]
    return here


def local_node(u: UOp, done: Mapping[UOp, UOp], k: int) -> UOp:
    """The op on the parts of its operands that device k holds, which `done` has; of an
    operand that is not sharded it takes the same part.
    """
    operands = u.data_src
    src = [_cut(u, s, done[s], k) for s in operands] + list(u.src[len(operands) :])
    if (sizes := u.declaration.size_operand) is not None:
        src[sizes] = dims(local_shape(u))
    arg = LoadArg() if u.op is Op.LOAD else u.arg
    return UOp(u.op, *src, arg=arg, tag=u.tag)


def window(t: UOp, axis: int, start: int, size: int) -> UOp:
    """A part of a value along one axis; all of it is the value."""
    if size == t.shape[axis]:
        return t
    offset = [start if a == axis else 0 for a in range(len(t.shape))]
    sizes = [size if a == axis else d for a, d in enumerate(t.shape)]
    return UOp(Op.SHRINK, t, dims(offset), dims(sizes))


def _cut(u: UOp, operand: UOp, local: UOp, k: int) -> UOp:
    """Cut the part of an unsharded operand that meets shard k of an elementwise op."""
    by_element = u.declaration.is_elementwise or u.op in (Op.LOAD, Op.STACK, Op.STORE)
    of = u.src[0] if u.op is Op.STORE else u
    if not by_element or shards(of) == 1 or shards(operand) > 1:
        return local
    axis = cast(int, of.axis) - len(of.shape) + len(operand.shape)
    if axis < 0 or operand.shape[axis] == 1:
        return local
    size = operand.shape[axis] // shards(of)
    return window(local, axis, k * size, size)
