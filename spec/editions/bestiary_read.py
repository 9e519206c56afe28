"""Reads the bestiary's ops into core nodes (D-088): loops, kernels, calls, lanes and movement.

A variable has a name there. One name is one variable, inside a body and around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from uop.spec.args import (
    AllReduceArg,
    AxisType,
    BinaryArg,
    ConstArg,
    Device,
    LanesArg,
    LoadArg,
    PadArg,
    PadFill,
    ParamArg,
    PlaceArg,
    RangeArg,
    ReduceArg,
    SpecialArg,
    WmmaArg,
    arg_of,
)
from uop.spec.conditions.labels import Condition
from uop.spec.dtype import dtypes
from uop.spec.editions import bestiary_args as b
from uop.spec.editions.edition import broken
from uop.spec.errors import MalformedError, UnsupportedError
from uop.spec.graph import slot_of
from uop.spec.ops.codegen import PROGRAM_PARTS
from uop.spec.ops.names import Op
from uop.spec.properties.shape import fixed, size_of
from uop.spec.text.codec import decode_scalar
from uop.spec.uop import UOp, const, dims, index_const
from uop.spec.walk import CALLS, free_params, rebuild

if TYPE_CHECKING:
    from uop.spec.editions.edition import Reading

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
        return UOp(Op.RANGE, end, arg=RangeArg(arg.axis_id), tag=PLACEHOLDER)
    tag = None if arg.renumbered else UNRENUMBERED
    return UOp(Op.RANGE, end, arg=RangeArg(arg.axis_id, AxisType[arg.axis_type.name]), tag=tag)


def close(body: UOp, ranges: Sequence[UOp]) -> UOp:
    """Close loops around a body, the first one outermost."""
    for r in reversed(ranges):
        body = UOp(Op.END, body, r)
    return body


def read_end(reading: Reading, src: Src, arg: None) -> UOp:
    return close(src[0], src[1:])


def read_reduce_axis(reading: Reading, src: Src, arg: b.ReduceAxisArg) -> UOp:
    """A REDUCE and a RESHAPE that drops the folded axes."""
    folded = UOp(Op.REDUCE, *src, arg=ReduceArg(arg.reduce_op, arg.axes))
    kept = (d for k, d in enumerate(folded.shape) if k not in arg.axes)
    return UOp(Op.RESHAPE, folded, dims(kept)) if arg.axes else folded


def place(u: UOp, condition: Condition) -> Device:
    """The device that a DEVICE operand names."""
    if u.op is not Op.DEVICE:
        raise broken(condition, u.op.name)
    return arg_of(u, PlaceArg).device


def read_allreduce(reading: Reading, src: Src, arg: b.ReduceOpArg) -> UOp:
    where = place(src[1], b.ALLREDUCE_DEVICE)
    return UOp(Op.ALLREDUCE, src[0], arg=AllReduceArg(arg.reduce_op, where))


def special_of(name: str) -> SpecialArg:
    """A hardware index under the name of the core."""
    return SpecialArg(HARDWARE.get(name, name))


def read_sink(reading: Reading, src: Src, arg: b.KernelArg) -> UOp:
    return UOp(Op.SINK, *src, tag=arg.info)


def read_program(reading: Reading, src: Src, arg: None) -> UOp:
    """The most complete part of a PROGRAM: its SINK, its LINEAR, or a core PROGRAM."""
    sink, device, *made = src
    place(device, b.PROGRAM_DEVICE)
    found = tuple(u.op for u in made)
    if sink.op is not Op.SINK or found != PROGRAM_PARTS[: len(made)]:
        raise broken(b.PROGRAM_STAGE, " ".join(op.name for op in (sink.op, *found)))
    if len(made) < 2:
        return made[0] if made else sink
    binary = made[2:] or [UOp(Op.BINARY, arg=BinaryArg(b""))]
    return UOp(Op.PROGRAM, *made[:2], *binary)


def read_barrier(reading: Reading, src: Src, arg: None) -> UOp:
    """A value that passes through becomes one AFTER the barrier."""
    if src[0].dtype is dtypes.void:
        return UOp(Op.BARRIER, *src)
    return UOp(Op.AFTER, src[0], UOp(Op.BARRIER, *src[1:]))


def read_vectorize(reading: Reading, src: Src, arg: None) -> UOp:
    found = [s.shape for s in src if s.shape != ()]
    if found:
        raise broken(b.VECTORIZE_ELEMENTS, str(found[0]))
    return UOp(Op.STACK, *src)


def read_gep(reading: Reading, src: Src, arg: b.PositionsArg) -> UOp:
    if len(arg.indices) == 1:
        return UOp(Op.INDEX, *src, index_const(arg.indices[0]))
    return UOp(Op.INDEX, *src, dims(arg.indices))


def read_vconst(reading: Reading, src: Src, arg: b.ValuesArg) -> UOp:
    try:
        bits = [decode_scalar(value, arg.dtype) for value in arg.values]
    except (MalformedError, ValueError) as error:
        raise broken(b.VCONST_VALUES, str(error)) from None
    return UOp(Op.STACK, *(UOp(Op.CONST, arg=ConstArg(x, arg.dtype)) for x in bits))


def read_cat(reading: Reading, src: Src, arg: None) -> UOp:
    """Concatenate the lanes of all vectors."""
    lanes: list[UOp] = []
    for v in src:
        if len(v.shape) > 1:
            raise broken(b.CAT_SOURCES, str(v.shape))
        count = fixed(v)[0] if v.shape else 0
        lanes += [UOp(Op.INDEX, v, index_const(k)) for k in range(count)] if v.shape else [v]
    return UOp(Op.STACK, *lanes)


def pairs_of(condition: Condition, pairs: tuple[tuple[int, ...], ...]) -> LanesArg:
    if any(len(p) != 2 for p in pairs):
        raise broken(condition, str(pairs))
    return LanesArg(tuple(p[0] for p in pairs), tuple(p[1] for p in pairs))


def read_wmma(reading: Reading, src: Src, arg: b.TensorCoreArg) -> UOp:
    if len(arg.dims) != 3 or arg.threads != 32 or arg.tile_grid != (1, 1):
        raise UnsupportedError(
            f"WMMA of {arg.dims} by {arg.threads} threads, {arg.tile_grid} tiles: "
            "one instruction of 32 threads has a meaning"
        )
    n, m, k = arg.dims
    for fragment, axes in zip(src, (arg.upcast_a, arg.upcast_b, arg.upcast_c), strict=True):
        factors = pairs_of(b.WMMA_UPCAST, axes).factors
        if axes and (prod(factors),) != fragment.shape:
            raise broken(b.WMMA_UPCAST, f"{axes} for shape {fragment.shape}")
    # What names and places the instruction is kept as a tag: the core has the product alone.
    note = b.noted(arg, "dims", "dtype_in", "dtype_out")
    return UOp(Op.WMMA, *src, arg=WmmaArg(m, n, k, arg.dtype_in, arg.dtype_out), tag=note)


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
        if v.op is not Op.LOAD or v.arg != LoadArg() or v.shape != condition.shape:
            return v
        target, alt, gate = (*v.src, const(0, v.dtype), condition)[:3]
        both = condition if gate is condition else UOp(Op.AND, condition, gate)
        return UOp(Op.LOAD, target, alt, both)

    return rebuild(root, gated, sources)


def read_endif(reading: Reading, src: Src, arg: None) -> UOp:
    return src[0] if src[0].op is Op.GROUP else UOp(Op.ENDIF, *src)


def _per_axis(condition: Condition, src: Src) -> None:
    """A number for each axis of T."""
    for s in src[1:]:
        if s.op is not Op.STACK or s.dtype is not dtypes.index or len(s.src) != len(src[0].shape):
            found = f"{len(s.src)} numbers for rank {len(src[0].shape)}"
            raise broken(condition, found)


def _sizes(numbers: UOp) -> tuple[int | UOp, ...]:
    """The numbers of an operand; a symbolic one is a node."""
    return tuple(n if isinstance(n := size_of(v), int) else v for v in numbers.src)


def _computed(op: Op, a: int | UOp, b: int | UOp) -> int | UOp:
    """The sum or the difference of two sizes."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b if op is Op.ADD else a - b
    if b == 0:
        return a
    return UOp(op, *dims((a, b)).src)


def read_pad(reading: Reading, src: Src, arg: None) -> UOp:
    t, before, after = src
    _per_axis(b.PAD_SIZES, src)
    from_start = map(partial(_computed, Op.ADD), t.shape, _sizes(before))
    sizes = map(partial(_computed, Op.ADD), from_start, _sizes(after))
    return UOp(Op.PAD, t, before, dims(sizes), arg=PadArg(PadFill.ZERO))


def read_shrink(reading: Reading, src: Src, arg: None) -> UOp:
    t, begins, ends = src
    _per_axis(b.SHRINK_SIZES, src)
    kept = map(partial(_computed, Op.SUB), _sizes(ends), _sizes(begins))
    return UOp(Op.SHRINK, t, begins, dims(kept))


def read_copy(reading: Reading, src: Src, arg: None) -> UOp:
    return UOp(Op.LOAD, src[0], arg=LoadArg(place(src[1], b.COPY_DEVICE)))


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
        kept = replace(arg_of(variable, ParamArg), slot=slot)
        numbered[variable] = UOp(Op.PARAM, *variable.src, arg=kept, tag=variable.tag)
    return body.substitute(numbered), *arguments
