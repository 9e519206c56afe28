"""Reads the bestiary's words of memory into core nodes (D-088): buffers, pointers, accesses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uop.spec.args import AddrSpace, BufferArg, ParamArg, SliceArg, UniqueArg, arg_of
from uop.spec.conditions.labels import Condition
from uop.spec.dtype import dtypes
from uop.spec.editions import bestiary_args as b
from uop.spec.editions.bestiary_read import VARIABLE_SLOTS, Src, close, place
from uop.spec.editions.edition import broken
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, index_const

if TYPE_CHECKING:
    from uop.spec.editions.edition import Reading

PTRCAT = "PTRCAT"
"""The tag of the elements at pointers that are grouped, and of the writes to them."""
LOCAL_SLOTS = 1 << 32
"""The slot of LUNIQUE 0: local and global identities are numbered separately and never collide."""


def read_buffer(reading: Reading, src: Src, arg: b.SizeArg) -> UOp:
    names = [s for s in src if s.op in (Op.UNIQUE, Op.LUNIQUE)]
    devices = [place(s, b.BUFFER_UNIQUE) for s in src if s not in names]
    if len(names) > 1 or len(devices) > 1:
        raise broken(b.BUFFER_UNIQUE, " ".join(s.op.name for s in src))
    if (arg.size is None) == (arg.shape is None):
        raise broken(b.BUFFER_SIZE, "neither" if arg.size is None else "both")
    shape = (arg.size or 0,) if arg.shape is None else arg.shape
    if any(n < 0 for n in shape):
        raise broken(b.BUFFER_SIZE, str(shape))
    said = _identity(names[0]) if names else None
    slot = reading.number(b.BUFFER_NUMBER, (arg, *devices), said)
    where = devices[0] if devices else None
    return UOp(Op.BUFFER, dims(shape), arg=BufferArg(slot, arg.dtype, where))


def _identity(name: UOp) -> int:
    """The slot of a UNIQUE or LUNIQUE."""
    return arg_of(name, UniqueArg).id + (LOCAL_SLOTS if name.op is Op.LUNIQUE else 0)


def _size(condition: Condition, size: int) -> UOp:
    if size < 0:
        raise broken(condition, str(size))
    return dims((size,))


def read_param(reading: Reading, src: Src, arg: b.SlotArg) -> UOp:
    shape = [s for s in src if s.op is not Op.DEVICE]
    where = [place(s, b.PARAM_DEVICE) for s in src if s.op is Op.DEVICE]
    if (arg.size is None) == (not shape) or len(where) > 1 or (where and arg.device):
        raise broken(b.PARAM_PLACE, f"{len(src)} operands")
    size = shape[0] if arg.size is None else _size(b.PARAM_SIZE, arg.size)
    device = where[0] if where else arg.device
    space = arg.addrspace if arg.size is None else arg.addrspace or AddrSpace.GLOBAL
    return UOp(Op.PARAM, size, arg=ParamArg(arg.slot, arg.dtype, device, space))


def read_local(reading: Reading, src: Src, arg: b.DefineArg) -> UOp:
    memory = BufferArg(arg.id, arg.dtype, None, AddrSpace.LOCAL)
    return UOp(Op.BUFFER, _size(b.LOCAL_SIZE, arg.size), arg=memory)


def read_reg(reading: Reading, src: Src, arg: b.DefineArg) -> UOp:
    memory = BufferArg(arg.id, arg.dtype, None, AddrSpace.REG)
    return UOp(Op.BUFFER, _size(b.REG_SIZE, arg.size), arg=memory)


def read_variable(reading: Reading, src: Src, arg: b.VariableArg) -> UOp:
    """A variable keeps its name as a tag."""
    number = reading.number(b.VARIABLE_NUMBER, arg.name, arg.slot)
    slot = number if arg.slot is not None else VARIABLE_SLOTS + number
    variable = ParamArg(slot, dtypes.index, min=arg.min, max=arg.max)
    return UOp(Op.PARAM, dims(()), arg=variable, tag=None if arg.name == f"v{slot}" else arg.name)


def read_view(reading: Reading, src: Src, arg: b.ViewArg) -> UOp:
    part = SliceArg(arg.size, arg.dtype or src[0].dtype)
    return UOp(Op.SLICE, *src, index_const(arg.offset), arg=part)


def read_index(reading: Reading, src: Src, arg: b.GateArg) -> UOp:
    """With a gate, elements are read where it is true; elsewhere they are 0, or the alt
    of a LOAD.
    """
    if not arg.gated:
        return UOp(Op.INDEX, *src)
    *access, gate = src
    element = UOp(Op.INDEX, *access)
    return UOp(Op.LOAD, element, const(0, element.dtype), gate)


def read_load(reading: Reading, src: Src, arg: None) -> UOp:
    """The buffer is an operand of the INDEX too; a gate of the INDEX becomes one of the LOAD."""
    buffer, index, *alt = src
    if index.op is Op.STACK and index.tag == PTRCAT:
        if not all(_is_into(read.src[0], buffer) for read in index.src):
            raise broken(b.LOAD_INDEX, "PTRCAT of another one")
        return index
    is_gated = _is_gated(index)
    target = index.src[0] if is_gated else index
    if not _is_into(target, buffer):
        found = f"{target.op.name} of {target.src[0].op.name}" if target.src else target.op.name
        raise broken(b.LOAD_INDEX, f"{found}, buffer {buffer.op.name}")
    if not is_gated:
        if alt:
            raise broken(b.LOAD_ALT, "no gate")
        return UOp(Op.LOAD, target)
    return UOp(Op.LOAD, target, alt[0], index.src[2]) if alt else index


def _is_into(target: UOp, buffer: UOp) -> bool:
    """Whether this is an element of a buffer, or of one AFTER writes to it."""
    if target.op not in (Op.INDEX, Op.PTRADD):
        return False
    place = target.src[0]
    while place is not buffer and place.op in (Op.AFTER, Op.PTRADD):
        place = place.src[0]
    return place is buffer


def read_store(reading: Reading, src: Src, arg: None) -> UOp:
    """Store to an element where its gate is true; to a PTRCAT element by element."""
    target, value, *ranges = src
    if target.op is Op.STACK and target.tag == PTRCAT:
        lanes = (UOp(Op.INDEX, value, index_const(k)) for k in range(len(target.src)))
        stores = (
            UOp(Op.STORE, p.src[0], v, *p.src[2:]) for p, v in zip(target.src, lanes, strict=True)
        )
        return close(UOp(Op.GROUP, *stores, tag=PTRCAT), ranges)
    if _is_gated(target):
        return close(UOp(Op.STORE, target.src[0], value, target.src[2]), ranges)
    return close(UOp(Op.STORE, target, value), ranges)


def read_ptrcat(reading: Reading, src: Src, arg: None) -> UOp:
    """The elements at the pointers."""
    return UOp(Op.STACK, *(p if _is_gated(p) else UOp(Op.LOAD, p) for p in src), tag=PTRCAT)


def _is_gated(u: UOp) -> bool:
    """Whether this is the reading of an INDEX with a gate."""
    return u.op is Op.LOAD and len(u.src) == 3
