"""Reads the bestiary's ops into core nodes (D-088): loops, kernels, calls, lanes and movement.

A variable has a name there. One name is one variable, inside a body and around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from uop.spec import args
from uop.spec.args import AddrSpace, Device, LanesArg, arg_of
from uop.spec.dtype import dtypes
from uop.spec.editions import bestiary_args as b
from uop.spec.errors import MalformedError, UnsupportedError
from uop.spec.graph import CALLS, free_params, rebuild, slot_of
from uop.spec.ops.codegen import PROGRAM_PARTS
from uop.spec.ops.names import Op
from uop.spec.properties.shape import fixed, size_of
from uop.spec.text.codec import decode_scalar
from uop.spec.uop import UOp, const, dims, index_const

if TYPE_CHECKING:
    from uop.spec.editions.edition import Read, Reading

Src = tuple[UOp, ...]

PLACEHOLDER, UNRENUMBERED = "PLACEHOLDER", "UNRENUMBERED"
"""Tags that distinguish nodes which are otherwise equal in the core."""
HARDWARE = {
    f"{hardware}.{axis}": f"{ours}{k}"
    for hardware, ours in (("blockIdx", "gidx"), ("threadIdx", "lidx"))
    for k, axis in enumerate("xyz")
}
"""The names of hardware indices, each with that of the core."""


def read_range(reading: Reading, src: Src, arg: b.AxisArg) -> UOp:
    """The bound of the RANGE comes AFTER the ranges that the loop depends on."""
    end, *deps = src
    if deps:
        end = UOp(Op.AFTER, end, *deps)
    if arg.axis_type is b.BestiaryAxisType.PLACEHOLDER:
        return UOp(Op.RANGE, end, arg=args.RangeArg(arg.axis_id), tag=PLACEHOLDER)
    tag = None if arg.renumbered else UNRENUMBERED
    return UOp(
        Op.RANGE, end, arg=args.RangeArg(arg.axis_id, args.AxisType[arg.axis_type.name]), tag=tag
    )


def close(body: UOp, ranges: Sequence[UOp]) -> UOp:
    """Close loops around a body, the first one outermost."""
    for r in reversed(ranges):
        body = UOp(Op.END, body, r)
    return body


def read_end(reading: Reading, src: Src, arg: None) -> UOp:
    return close(src[0], src[1:])


def read_reduce_axis(reading: Reading, src: Src, arg: b.ReduceAxisArg) -> UOp:
    """A REDUCE and a RESHAPE that drops the folded axes."""
    folded = UOp(Op.REDUCE, *src, arg=args.ReduceArg(arg.reduce_op, arg.axes))
    kept = (d for k, d in enumerate(folded.shape) if k not in arg.axes)
    return UOp(Op.RESHAPE, folded, dims(kept)) if arg.axes else folded


def _place(reading: Reading, u: UOp, label: str) -> Device:
    """The device that a DEVICE operand names."""
    if u.op is not Op.DEVICE:
        raise reading.broken(label, u.op.name)
    return arg_of(u, args.PlaceArg).device


def read_allreduce(reading: Reading, src: Src, arg: b.ReduceOpArg) -> UOp:
    where = _place(reading, src[1], "ALLREDUCE.device")
    return UOp(Op.ALLREDUCE, src[0], arg=args.AllReduceArg(arg.reduce_op, where))


def special_of(name: str) -> args.SpecialArg:
    """A hardware index under the name of the core."""
    return args.SpecialArg(HARDWARE.get(name, name))


def read_sink(reading: Reading, src: Src, arg: b.KernelArg) -> UOp:
    return UOp(Op.SINK, *src, tag=arg.info)


def read_program(reading: Reading, src: Src, arg: None) -> UOp:
    """The most complete part of a PROGRAM: its SINK, its LINEAR, or a core PROGRAM."""
    sink, device, *made = src
    _place(reading, device, "PROGRAM.device")
    found = tuple(u.op for u in made)
    if sink.op is not Op.SINK or found != PROGRAM_PARTS[: len(made)]:
        raise reading.broken("PROGRAM.stage", " ".join(op.name for op in (sink.op, *found)))
    if len(made) < 2:
        return made[0] if made else sink
    binary = made[2:] or [UOp(Op.BINARY, arg=args.BinaryArg(b""))]
    return UOp(Op.PROGRAM, *made[:2], *binary)


def read_barrier(reading: Reading, src: Src, arg: None) -> UOp:
    """A value that passes through becomes one AFTER the barrier."""
    if src[0].dtype is dtypes.void:
        return UOp(Op.BARRIER, *src)
    return UOp(Op.AFTER, src[0], UOp(Op.BARRIER, *src[1:]))


def read_vectorize(reading: Reading, src: Src, arg: None) -> UOp:
    found = [s.shape for s in src if s.shape != ()]
    if found:
        raise reading.broken("VECTORIZE.elements", str(found[0]))
    return UOp(Op.STACK, *src)


def read_gep(reading: Reading, src: Src, arg: b.PositionsArg) -> UOp:
    if len(arg.indices) == 1:
        return UOp(Op.INDEX, *src, index_const(arg.indices[0]))
    return UOp(Op.INDEX, *src, dims(arg.indices))


def read_vconst(reading: Reading, src: Src, arg: b.ValuesArg) -> UOp:
    try:
        bits = [decode_scalar(value, arg.dtype) for value in arg.values]
    except (MalformedError, ValueError) as error:
        raise reading.broken("VCONST.values", str(error)) from None
    return UOp(Op.STACK, *(UOp(Op.CONST, arg=args.ConstArg(x, arg.dtype)) for x in bits))


def read_cat(reading: Reading, src: Src, arg: None) -> UOp:
    """Concatenate the lanes of all vectors."""
    lanes: list[UOp] = []
    for v in src:
        if len(v.shape) > 1:
            raise reading.broken("CAT.sources", str(v.shape))
        count = fixed(v)[0] if v.shape else 0
        lanes += [UOp(Op.INDEX, v, index_const(k)) for k in range(count)] if v.shape else [v]
    return UOp(Op.STACK, *lanes)


def read_unroll(reading: Reading, src: Src, arg: b.UnrollAxesArg) -> UOp:
    return UOp(Op.UNROLL, *src, arg=_lanes(reading, "UNROLL.axes", arg.unroll_axes))


def read_contract(reading: Reading, src: Src, arg: b.UpcastRangesArg) -> UOp:
    return UOp(Op.CONTRACT, *src, arg=_lanes(reading, "CONTRACT.axes", arg.upcast_ranges))


def _lanes(reading: Reading, label: str, pairs: tuple[tuple[int, ...], ...]) -> LanesArg:
    if any(len(p) != 2 for p in pairs):
        raise reading.broken(label, str(pairs))
    return LanesArg(tuple(p[0] for p in pairs), tuple(p[1] for p in pairs))


def read_wmma(reading: Reading, src: Src, arg: b.TensorCoreArg) -> UOp:
    if len(arg.dims) != 3 or arg.threads != 32 or arg.tile_grid != (1, 1):
        raise UnsupportedError(
            f"WMMA of {arg.dims} by {arg.threads} threads, {arg.tile_grid} tiles: "
            "one instruction of 32 threads has a meaning"
        )
    n, m, k = arg.dims
    for fragment, axes in zip(src, (arg.upcast_a, arg.upcast_b, arg.upcast_c), strict=True):
        factors = _lanes(reading, "WMMA.upcast", axes).factors
        if axes and (prod(factors),) != fragment.shape:
            raise reading.broken("WMMA.upcast", f"{axes} for shape {fragment.shape}")
    # What names and places the instruction is kept as a tag: the core has the product alone.
    note = b.noted(arg, "dims", "dtype_in", "dtype_out")
    return UOp(Op.WMMA, *src, arg=args.WmmaArg(m, n, k, arg.dtype_in, arg.dtype_out), tag=note)


def read_if(reading: Reading, src: Src, arg: None) -> UOp:
    """With a body, its writes gated by the condition; alone, the start of a block of a LINEAR."""
    condition, *body = src
    if not body:
        return UOp(Op.IF, condition)
    return UOp(Op.GROUP, *(_effect_if(condition, s) for s in body))


def _effect_if(condition: UOp, effect: UOp) -> UOp:
    """An effect where the condition holds: elsewhere it neither writes nor reads."""
    if effect.op is Op.GROUP:
        return effect.with_src([_effect_if(condition, s) for s in effect.src])
    if effect.op is Op.END:
        return effect.with_src([_effect_if(condition, effect.src[0]), *effect.src[1:]])
    if effect.op is not Op.STORE or effect.src[0].shape != condition.shape:
        raise UnsupportedError(f"IF around {effect.op.name}: expected STOREs of its shape")
    target, value, *gate = (_value_if(condition, s) for s in effect.src)
    gated = UOp(Op.AND, condition, gate[0]) if gate else condition
    return UOp(Op.STORE, target, value, gated)


def _value_if(condition: UOp, root: UOp) -> UOp:
    """A value whose LOADs read nothing where the condition is false."""

    def sources(u: UOp) -> Sequence[UOp]:
        return () if u.dtype is dtypes.void else u.src

    def gated(u: UOp, src: list[UOp]) -> UOp:
        v = u.with_src(src) if src else u
        if v.op is not Op.LOAD or v.arg != args.LoadArg() or v.shape != condition.shape:
            return v
        target, alt, gate = (*v.src, const(0, v.dtype), condition)[:3]
        both = condition if gate is condition else UOp(Op.AND, condition, gate)
        return UOp(Op.LOAD, target, alt, both)

    return rebuild(root, gated, sources)


def read_endif(reading: Reading, src: Src, arg: None) -> UOp:
    return src[0] if src[0].op is Op.GROUP else UOp(Op.ENDIF, *src)


def _check_axes(reading: Reading, label: str, src: Src) -> None:
    """A number for each axis of T."""
    for s in src[1:]:
        if s.op is not Op.STACK or s.dtype is not dtypes.index or len(s.src) != len(src[0].shape):
            found = f"{len(s.src)} numbers for rank {len(src[0].shape)}"
            raise reading.broken(label, found)


def _sizes(numbers: UOp) -> tuple[int | UOp, ...]:
    """The numbers of an operand; a symbolic one is a node."""
    return tuple(n if isinstance(n := size_of(v), int) else v for v in numbers.src)


def _computed(op: Op, a: int | UOp, b: int | UOp) -> int | UOp:
    if isinstance(a, int) and isinstance(b, int):
        return a + b if op is Op.ADD else a - b
    if b == 0:
        return a
    return UOp(op, *dims((a, b)).src)


def read_pad(reading: Reading, src: Src, arg: None) -> UOp:
    t, before, after = src
    _check_axes(reading, "PAD.sizes", src)
    from_start = map(partial(_computed, Op.ADD), t.shape, _sizes(before))
    sizes = map(partial(_computed, Op.ADD), from_start, _sizes(after))
    return UOp(Op.PAD, t, before, dims(sizes), arg=args.PadArg(args.PadFill.ZERO))


def read_shrink(reading: Reading, src: Src, arg: None) -> UOp:
    t, begins, ends = src
    _check_axes(reading, "SHRINK.sizes", src)
    kept = map(partial(_computed, Op.SUB), _sizes(ends), _sizes(begins))
    return UOp(Op.SHRINK, t, begins, dims(kept))


def read_copy(reading: Reading, src: Src, arg: None) -> UOp:
    return UOp(Op.LOAD, src[0], arg=args.LoadArg(_place(reading, src[1], "COPY.device")))


def read_select(reading: Reading, src: Src, arg: b.ElementArg) -> UOp:
    return UOp(Op.INDEX, *src, index_const(arg.index))


VARIABLE_SLOTS = 1 << 33
"""The slot of the first variable: variables have names there, not slots."""


def read_function(reading: Reading, src: tuple[UOp, ...], arg: b.CallArg) -> UOp:
    """A FUNCTION if the body is a TUPLE, else the CALL of a kernel."""
    op = Op.FUNCTION if src[0].op is Op.TUPLE else Op.CALL
    return UOp(op, *_with_variables(src[0], src[1:]), tag=_note(arg))


def _note(arg: b.CallArg) -> str | None:
    """The tag that keeps the annotations of a call: its name alone if there are no others."""
    if arg == b.CallArg(arg.name) and arg.name is not None and arg.name[:1] != "{":
        return arg.name
    return b.noted(arg)


def read_call(reading: Reading, src: tuple[UOp, ...], arg: b.CallArg) -> UOp:
    """A call of a FUNCTION or of a body, with its own arguments."""
    body, *arguments = src
    if body.op in CALLS:
        # The arguments after those that the text lists are the variables of the body.
        arguments += body.src[1 + len(arguments) :]
        body = body.src[0]
    return read_function(reading, (body, *arguments), arg)


def _with_variables(body: UOp, said: tuple[UOp, ...]) -> tuple[UOp, ...]:
    """A body and its arguments, with the number of each variable that the body names.

    The number is a BIND of the variable among the arguments or in the body, else the variable.
    """
    arguments, numbered = list(said), dict[UOp, UOp]()
    bound = {u.src[0]: u.src[1] for u in body.toposort() if u.op is Op.BIND}
    for variable in sorted(free_params(body), key=slot_of):
        if slot_of(variable) < VARIABLE_SLOTS:
            continue
        given = [k for k, a in enumerate(said) if variable in (a, *a.src[: a.op is Op.BIND])]
        if not given:
            value = bound.get(variable, variable)
            arguments.append(value if value.op is Op.CONST else variable)
        slot = given[0] if given else len(arguments) - 1
        kept = replace(arg_of(variable, args.ParamArg), slot=slot)
        numbered[variable] = UOp(Op.PARAM, *variable.src, arg=kept, tag=variable.tag)
    return body.substitute(numbered), *arguments


PTRCAT = "PTRCAT"
"""The tag of the elements at pointers that are grouped, and of the writes to them."""
LOCAL_SLOTS = 1 << 32
"""The slot of LUNIQUE 0: local and global identities are numbered separately and never collide."""


def read_buffer(reading: Reading, src: Src, arg: b.SizeArg) -> UOp:
    names = [s for s in src if s.op in (Op.UNIQUE, Op.LUNIQUE)]
    devices = [_place(reading, s, "BUFFER.unique") for s in src if s not in names]
    if len(names) > 1 or len(devices) > 1:
        raise reading.broken("BUFFER.unique", " ".join(s.op.name for s in src))
    if (arg.size is None) == (arg.shape is None):
        raise reading.broken("BUFFER.size", "neither" if arg.size is None else "both")
    shape = (arg.size or 0,) if arg.shape is None else arg.shape
    if any(n < 0 for n in shape):
        raise reading.broken("BUFFER.size", str(shape))
    said = _identity(names[0]) if names else None
    slot = reading.number("BUFFER.number", (arg, *devices), said)
    where = devices[0] if devices else None
    return UOp(Op.BUFFER, dims(shape), arg=args.BufferArg(slot, arg.dtype, where))


def _identity(name: UOp) -> int:
    return arg_of(name, args.UniqueArg).id + (LOCAL_SLOTS if name.op is Op.LUNIQUE else 0)


def _size(reading: Reading, label: str, size: int) -> UOp:
    if size < 0:
        raise reading.broken(label, str(size))
    return dims((size,))


def read_param(reading: Reading, src: Src, arg: b.SlotArg) -> UOp:
    shape = [s for s in src if s.op is not Op.DEVICE]
    where = [_place(reading, s, "PARAM.device") for s in src if s.op is Op.DEVICE]
    if (arg.size is None) == (not shape) or len(where) > 1 or (where and arg.device):
        raise reading.broken("PARAM.place", f"{len(src)} operands")
    size = shape[0] if arg.size is None else _size(reading, "PARAM.size", arg.size)
    device = where[0] if where else arg.device
    space = arg.addrspace if arg.size is None else arg.addrspace or AddrSpace.GLOBAL
    return UOp(Op.PARAM, size, arg=args.ParamArg(arg.slot, arg.dtype, device, space))


def read_memory(space: AddrSpace) -> Read:
    """The reader of DEFINE_LOCAL or DEFINE_REG."""

    def read(reading: Reading, src: Src, arg: b.DefineArg) -> UOp:
        size = _size(reading, f"DEFINE_{space.name}.size", arg.size)
        return UOp(Op.BUFFER, size, arg=args.BufferArg(arg.id, arg.dtype, None, space))

    return read


def read_variable(reading: Reading, src: Src, arg: b.VariableArg) -> UOp:
    """A variable keeps its name as a tag."""
    number = reading.number("DEFINE_VAR.number", arg.name, arg.slot)
    slot = number if arg.slot is not None else VARIABLE_SLOTS + number
    variable = args.ParamArg(slot, dtypes.index, min=arg.min, max=arg.max)
    return UOp(Op.PARAM, dims(()), arg=variable, tag=None if arg.name == f"v{slot}" else arg.name)


def read_view(reading: Reading, src: Src, arg: b.ViewArg) -> UOp:
    part = args.SliceArg(arg.size, arg.dtype or src[0].dtype)
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
            raise reading.broken("LOAD.index", "PTRCAT of another one")
        return index
    is_gated = _is_gated(index)
    target = index.src[0] if is_gated else index
    if not _is_into(target, buffer):
        found = f"{target.op.name} of {target.src[0].op.name}" if target.src else target.op.name
        raise reading.broken("LOAD.index", f"{found}, buffer {buffer.op.name}")
    if not is_gated:
        if alt:
            raise reading.broken("LOAD.alt", "no gate")
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
