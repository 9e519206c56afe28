"""Writes core nodes in the bestiary's words."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from uop.spec import args
from uop.spec.args import AddrSpace, Device, arg_of
from uop.spec.dtype import dtypes
from uop.spec.editions import bestiary_args as b
from uop.spec.editions.bestiary_read import HARDWARE, LOCAL_SLOTS, PLACEHOLDER, PTRCAT, UNRENUMBERED
from uop.spec.ops.names import Op
from uop.spec.properties.shape import fixed, index_values
from uop.spec.text.codec import encode_scalar
from uop.spec.text.literal import Literal, Word
from uop.spec.uop import UOp, dims

if TYPE_CHECKING:
    from uop.spec.editions.edition import Form, Writing


def _sources(w: Writing, u: UOp) -> list[Form]:
    return [w[s] for s in u.src]


def _shape(w: Writing, shape: tuple[int, ...]) -> Form:
    return w.core(dims(shape))


def _device(w: Writing, device: Device) -> Form:
    return w.form("DEVICE", arg=args.PlaceArg(device))


def write_range(w: Writing, u: UOp) -> Form:
    """A loop with the ranges that its bound comes AFTER; its tag may be one of the reader."""
    arg, end = arg_of(u, args.RangeArg), u.src[0]
    kind = b.BestiaryAxisType[arg.axis_type.name]
    if u.tag == PLACEHOLDER and arg.axis_type is args.AxisType.LOOP:
        kind = b.BestiaryAxisType.PLACEHOLDER
    src = end.src if end.op is Op.AFTER and end.tag is None else (end,)
    said = b.AxisArg(arg.id, kind, renumbered=u.tag != UNRENUMBERED)
    return w.form("RANGE", *(w[s] for s in src), arg=said)


def write_end(w: Writing, u: UOp) -> Form:
    """ENDs of one body become one END."""
    inner, r = w[u.src[0]], w[u.src[1]]
    if inner.name == "END" and inner.tag is None:
        return w.form("END", inner.src[0], r, *inner.src[1:])
    return w.form("END", inner, r)


def write_reduce(w: Writing, u: UOp) -> Form:
    arg = arg_of(u, args.ReduceArg)
    if not arg.axes:
        return w.form("REDUCE", *_sources(w, u), arg=b.ReduceOpArg(arg.op))
    if len(u.src) > 1:
        raise w.cannot(u, "one fold over axes and RANGEs")
    return w.form("RESHAPE", _reduced(w, u), _shape(w, u.shape))


def _reduced(w: Writing, u: UOp) -> Form:
    arg = arg_of(u, args.ReduceArg)
    return w.form("REDUCE_AXIS", w[u.src[0]], arg=b.ReduceAxisArg(arg.op, arg.axes))


def write_reshape(w: Writing, u: UOp) -> Form:
    """A RESHAPE that drops the folded axes of a REDUCE becomes part of REDUCE_AXIS."""
    t = u.src[0]
    if t.op is Op.REDUCE and len(t.src) == 1 and t.tag is None:
        axes = arg_of(t, args.ReduceArg).axes
        if axes and u.shape == tuple(d for k, d in enumerate(t.shape) if k not in axes):
            return _reduced(w, t)
    return w.same(u)


def write_all_reduce(w: Writing, u: UOp) -> Form:
    arg = arg_of(u, args.AllReduceArg)
    where = _device(w, arg.device)
    return w.form("ALLREDUCE", w[u.src[0]], where, arg=b.ReduceOpArg(arg.op))


def write_buffer(w: Writing, u: UOp) -> Form:
    """Memory by its shape; that of a workgroup or a work item is flat."""
    arg, size = arg_of(u, args.BufferArg), prod(fixed(u))
    if arg.addrspace is AddrSpace.GLOBAL:
        where = [] if arg.device is None else [_device(w, arg.device)]
        local = arg.slot >= LOCAL_SLOTS
        identity = args.UniqueArg(arg.slot - LOCAL_SLOTS if local else arg.slot)
        name = w.form("LUNIQUE" if local else "UNIQUE", arg=identity)
        is_flat = len(u.shape) == 1
        said = b.SizeArg(arg.dtype, size if is_flat else None, None if is_flat else u.shape)
        return w.form("BUFFER", name, *where, arg=said)
    if arg.device is not None:
        raise w.cannot(u, f"{arg.addrspace.name} memory on a named device")
    define = b.DefineArg(arg.slot, size, arg.dtype)
    flat = w.form(f"DEFINE_{arg.addrspace.name}", arg=define)
    return flat if len(u.shape) == 1 else w.form("RESHAPE", flat, w[u.src[0]])


def write_param(w: Writing, u: UOp) -> Form:
    arg = arg_of(u, args.ParamArg)
    if arg.min is not None and arg.max is not None:
        variable = b.VariableArg(u.tag or f"v{arg.slot}", arg.min, arg.max, arg.slot)
        return w.form("DEFINE_VAR", arg=variable)
    if len(u.shape) == 1 and arg.addrspace is AddrSpace.GLOBAL:
        flat = b.SlotArg(arg.slot, arg.dtype, u.shape[0], arg.device)
        return w.form("PARAM", arg=flat)
    shaped = b.SlotArg(arg.slot, arg.dtype, None, arg.device, arg.addrspace)
    return w.form("PARAM", w[u.src[0]], arg=shaped)


def special_of(name: str) -> args.SpecialArg:
    """A hardware index under its own name."""
    own = (own for own, core in HARDWARE.items() if core == name)
    return args.SpecialArg(next(own, name))


def write_slice(w: Writing, u: UOp) -> Form:
    arg, offset = arg_of(u, args.SliceArg), u.src[1]
    if offset.op is not Op.CONST:
        raise w.cannot(u, "an offset that is no constant")
    view = b.ViewArg(arg.size, int(arg_of(offset, args.ConstArg).value), arg.dtype)
    return w.form("BUFFER_VIEW", w[u.src[0]], arg=view)


def write_index(w: Writing, u: UOp) -> Form:
    """An INDEX of constant lanes of a vector becomes a GEP."""
    t, *indices = u.src
    if t.addrspace is None and len(t.shape) == 1 and len(indices) == 1 and indices[0].tag is None:
        at = _constants(indices[0])
        if at is not None and indices[0].dtype is dtypes.index and (indices[0].shape != (1,)):
            return w.form("GEP", w[t], arg=b.PositionsArg(at))
    return w.form("INDEX", *_sources(w, u))


def _constants(i: UOp) -> tuple[int, ...] | None:
    """The values of a constant index, or of a STACK of them."""
    found = i.src if i.op is Op.STACK else (i,)
    if not all(s.op is Op.CONST and s.dtype is dtypes.index and s.tag is None for s in found):
        return None
    return tuple(int(arg_of(s, args.ConstArg).value) for s in found)


def write_call(w: Writing, u: UOp) -> Form:
    """A call, with the annotations that its tag keeps."""
    tag = u.tag or ""
    said = b.from_note(b.CallArg, tag) if tag[:1] == "{" else b.CallArg(u.tag)
    return w.form(u.op.name, *_sources(w, u), arg=said or b.CallArg())


def write_sink(w: Writing, u: UOp) -> Form:
    return w.form("SINK", *_sources(w, u), arg=b.KernelArg(u.tag))


def write_group(w: Writing, u: UOp) -> Form:
    """Writes to pointers that are grouped are one STORE."""
    if u.tag == PTRCAT and u.src:
        values = {s.src[1].src[0] for s in u.src if s.src[1].op is Op.INDEX}
        if len(values) == 1:
            pointers = w.form("PTRCAT", *(_target(w, s) for s in u.src))
            return w.form("STORE", pointers, w[values.pop()])
    return w.same(u)


def _target(w: Writing, store: UOp) -> Form:
    target, _, *gate = store.src
    return _gated(w, target, gate[0]) if gate else w[target]


def write_load(w: Writing, u: UOp) -> Form:
    """A LOAD of an element, a copy to a device, or a copy on the same device."""
    arg, source = arg_of(u, args.LoadArg), u.src[0]
    is_element = source.op in (Op.INDEX, Op.PTRADD) and source.addrspace is not None
    if is_element and arg == args.LoadArg():
        buffer = w[source.src[0]]
        if len(u.src) == 1:
            return w.form("LOAD", buffer, w[source])
        if len(u.src) == 3 and source.op is Op.INDEX:
            return w.form("LOAD", buffer, _gated(w, source, u.src[2]), w[u.src[1]])
    if len(u.src) > 1:
        raise w.cannot(u, "alt or gate without an INDEX of a location")
    if arg.addrspace is not None:
        if u.axis is not None:
            raise w.cannot(u, "a sharded copy to an addrspace")
        staged = args.StageArg(arg.device, arg.addrspace)
        return w.form("BUFFERIZE", w[source], arg=staged)
    if arg.device is None:
        return w.form("CONTIGUOUS", w[source])
    return w.form("COPY", w[source], _device(w, arg.device))


def _gated(w: Writing, index: UOp, gate: UOp) -> Form:
    return w.form("INDEX", *_sources(w, index), w[gate], arg=b.GateArg(gated=True))


def write_store(w: Writing, u: UOp) -> Form:
    target, value, *gate = u.src
    if not gate:
        return w.form("STORE", w[target], w[value])
    if target.op is not Op.INDEX or target.shape != ():
        raise w.cannot(u, "a gate without an INDEX of an element")
    return w.form("STORE", _gated(w, target, gate[0]), w[value])


def write_program(w: Writing, u: UOp) -> Form:
    """The core has neither the SINK nor the device of a PROGRAM, so they are left out."""
    return w.form("PROGRAM", w.form("SINK"), _device(w, "ANY"), *_sources(w, u))


def write_stack(w: Writing, u: UOp) -> Form:
    """A shape, a vector of constants, a vector, or a stack of tensors."""
    if u.tag == PTRCAT and all(s.op is Op.LOAD for s in u.src):
        pointers = w.form("PTRCAT", *(_pointer(w, s) for s in u.src))
        return w.form("LOAD", w[u.src[0].src[0].src[0]], pointers)
    at = _constants(u)
    if at is not None and u.dtype is dtypes.index:
        return w.same(u)
    if u.shape[1:]:
        return w.form("MSTACK", *_sources(w, u))
    if all(s.op is Op.CONST and s.tag is None for s in u.src):
        values = tuple(encode_scalar(arg_of(s, args.ConstArg).bits, u.dtype) for s in u.src)
        return w.form("VCONST", arg=b.ValuesArg(values, u.dtype))  # type: ignore[arg-type]
    return w.form("VECTORIZE", *_sources(w, u))


def _pointer(w: Writing, load: UOp) -> Form:
    target, *gated = load.src
    return _gated(w, target, gated[1]) if gated else w[target]


def pairs_of(axes: tuple[int, ...], factors: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    return tuple(zip(axes, factors, strict=True))


def write_wmma(w: Writing, u: UOp) -> Form:
    arg = arg_of(u, args.WmmaArg)
    said: dict[str, Literal] = {
        "dims": (arg.n, arg.m, arg.k),
        "dtype_in": Word(arg.dtype_in.name),
        "dtype_out": Word(arg.dtype_out.name),
    }
    noted = b.from_note(b.TensorCoreArg, u.tag or "{}", **said)
    core = noted or b.TensorCoreArg((arg.n, arg.m, arg.k), arg.dtype_in, arg.dtype_out)
    return w.form("WMMA", *_sources(w, u), arg=core)


def write_pad(w: Writing, u: UOp) -> Form:
    t, offset, _ = u.src
    if arg_of(u, args.PadArg).fill is args.PadFill.INVALID:
        raise w.cannot(u, "its PAD fills with zeros, none with INVALID elements")
    before = index_values(offset)
    after = tuple(n - o - s for n, o, s in zip(fixed(u), before, fixed(t), strict=True))
    return w.form("PAD", w[t], w[offset], _shape(w, after))


def write_shrink(w: Writing, u: UOp) -> Form:
    begins = index_values(u.src[1])
    ends = tuple(o + s for o, s in zip(begins, fixed(u), strict=True))
    return w.form("SHRINK", w[u.src[0]], w[u.src[1]], _shape(w, ends))
