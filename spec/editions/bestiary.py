"""The edition `bestiary`: the ops of a related language as words, and queries on nodes (D-088).

It drops folded axes, has an op per kind of memory (BUFFER, DEFINE_LOCAL, DEFINE_REG), vectors
in place of STACK and INDEX, and a PROGRAM that is filled stage by stage.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from uop.spec import args
from uop.spec.editions import bestiary_args as b
from uop.spec.editions import bestiary_read as r
from uop.spec.editions import bestiary_write as w
from uop.spec.editions.edition import Word, by_name, core_word, read_as, written_as
from uop.spec.editions.tree import TreeEdition
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS

if TYPE_CHECKING:
    from uop.spec.uop import UOp

RENAMED = {
    "CONTIGUOUS_BACKWARD": Op.CONTIGUOUSBACKWARD,
    "CUSTOM_FUNCTION": Op.CUSTOMFUNCTION,
    "CUSTOMI": Op.CUSTOM,
    "LT": Op.CMPLT,
}

WORDS = by_name(
    b.TITLES,
    # The core ops that it shares: same name, operands and arg.
    *map(core_word, (Op.CONST, Op.TUPLE, Op.AFTER, Op.GROUP, Op.LINEAR, Op.DETACH)),
    *map(core_word, (Op.CONTIGUOUS, Op.CUSTOM, Op.UNIQUE, Op.LUNIQUE, Op.DEVICE, Op.NOOP)),
    *map(core_word, (Op.PRECAST, Op.BITCAST, Op.CDIV, Op.CMOD, Op.MIN, Op.BIND)),
    *(core_word(op) for op, d in DECLARATIONS.items() if d.is_elementwise),
    *(replace(core_word(op), name=name) for name, op in RENAMED.items()),
    *(replace(core_word(op), src=("src", "new_shape")) for op in (Op.RESHAPE, Op.EXPAND)),
    Word("SPECIAL", ("end",), read_as(Op.SPECIAL, r.special_of), args.SpecialArg),
    Word("RANGE", ("end", "deps*"), r.read_range, b.AxisArg),
    Word("END", ("computation", "ranges*"), r.read_end),
    Word("REDUCE_AXIS", ("src",), r.read_reduce_axis, b.ReduceAxisArg),
    Word("REDUCE", ("src", "ranges*"), read_as(Op.REDUCE, args.ReduceArg), b.ReduceOpArg),
    Word("ALLREDUCE", ("src", "device"), r.read_allreduce, b.ReduceOpArg),
    Word("BUFFER", ("unique?", "device?"), r.read_buffer, b.SizeArg),
    Word("BUFFER_VIEW", ("buffer",), r.read_view, b.ViewArg),
    Word("BUFFERIZE", ("compute", "ranges*"), read_as(Op.STAGE), args.StageArg),
    Word("INDEX", ("buffer", "indices*"), r.read_index, b.GateArg),
    Word("POINTER_INDEX", ("ptr", "offset"), read_as(Op.PTRADD, args.PtrAddArg), b.OffsetArg),
    Word("LOAD", ("buffer", "index", "alt?"), r.read_load),
    Word("STORE", ("index", "value", "ranges*"), r.read_store),
    Word("SINK", ("sources*",), r.read_sink, b.KernelArg),
    Word("CALL", ("body", "args*"), r.read_call, b.CallArg),
    Word("FUNCTION", ("body", "args*"), r.read_function, b.CallArg),
    Word("GET_TUPLE", ("src",), read_as(Op.GETTUPLE, args.GetTupleArg), b.ElementArg),
    Word("PROGRAM", ("sink", "device", "linear?", "source?", "binary?"), r.read_program),
    Word("SOURCE", (), read_as(Op.SOURCE, args.SourceArg), b.CodeArg),
    Word("PROGRAM_BINARY", (), read_as(Op.BINARY), args.BinaryArg),
    Word("BARRIER", ("src", "deps*"), r.read_barrier),
    Word("VECTORIZE", ("elements*",), r.read_vectorize),
    Word("GEP", ("vector",), r.read_gep, b.PositionsArg),
    Word("VCONST", (), r.read_vconst, b.ValuesArg),
    Word("CAT", ("sources*",), r.read_cat),
    Word("PTRCAT", ("source", "sources*"), r.read_ptrcat),
    Word("UNROLL", ("src",), r.read_unroll, b.UnrollAxesArg),
    Word("CONTRACT", ("src",), r.read_contract, b.UpcastRangesArg),
    Word("WMMA", ("a", "b", "c"), r.read_wmma, b.TensorCoreArg),
    Word("IF", ("condition", "body*"), r.read_if),
    Word("ENDIF", ("if_op",), r.read_endif),
    Word("PARAM", ("shape_or_device*",), r.read_param, b.SlotArg),
    Word("DEFINE_VAR", (), r.read_variable, b.VariableArg),
    Word("DEFINE_LOCAL", (), r.read_memory(args.AddrSpace.LOCAL), b.DefineArg),
    Word("DEFINE_REG", (), r.read_memory(args.AddrSpace.REG), b.DefineArg),
    Word("PAD", ("src", "begin_pads", "end_pads"), r.read_pad),
    Word("SHRINK", ("src", "begins", "ends"), r.read_shrink),
    Word("PERMUTE", ("src",), read_as(Op.PERMUTE, args.PermuteArg), b.AxesArg),
    Word("FLIP", ("src",), read_as(Op.FLIP, args.FlipArg), b.FlaggedArg),
    Word("COPY", ("src", "device"), r.read_copy),
    Word("STACK", ("sizes*",), read_as(Op.STACK)),
    Word("MSTACK", ("sources*",), read_as(Op.STACK)),
    Word("MSELECT", ("src",), r.read_select, b.ElementArg),
    Word("MULTI", ("sources*",), read_as(Op.TUPLE)),
)

WRITES = {
    Op.RANGE: w.write_range,
    Op.END: w.write_end,
    Op.REDUCE: w.write_reduce,
    Op.RESHAPE: w.write_reshape,
    Op.ALLREDUCE: w.write_all_reduce,
    Op.BUFFER: w.write_buffer,
    Op.CALL: w.write_call,
    Op.FUNCTION: w.write_call,
    Op.SINK: w.write_sink,
    Op.GROUP: w.write_group,
    Op.PARAM: w.write_param,
    Op.SLICE: w.write_slice,
    Op.SPECIAL: written_as("SPECIAL", w.special_of),
    Op.STAGE: written_as("BUFFERIZE"),
    Op.PTRADD: written_as("POINTER_INDEX", b.OffsetArg),
    Op.INDEX: w.write_index,
    Op.LOAD: w.write_load,
    Op.STORE: w.write_store,
    Op.GETTUPLE: written_as("GET_TUPLE", b.ElementArg),
    Op.PROGRAM: w.write_program,
    Op.SOURCE: written_as("SOURCE", b.CodeArg),
    Op.BINARY: written_as("PROGRAM_BINARY"),
    Op.STACK: w.write_stack,
    Op.UNROLL: written_as("UNROLL", lambda *lanes: b.UnrollAxesArg(w.pairs_of(*lanes))),
    Op.CONTRACT: written_as("CONTRACT", lambda *lanes: b.UpcastRangesArg(w.pairs_of(*lanes))),
    Op.WMMA: w.write_wmma,
    Op.PAD: w.write_pad,
    Op.SHRINK: w.write_shrink,
    Op.PERMUTE: written_as("PERMUTE", b.AxesArg),
    Op.FLIP: written_as("FLIP", b.FlaggedArg),
    Op.CONTIGUOUSBACKWARD: written_as("CONTIGUOUS_BACKWARD"),
    Op.CUSTOMFUNCTION: written_as("CUSTOM_FUNCTION"),
}

BESTIARY = TreeEdition(
    "bestiary", "The op bestiary of a relative of this language.", WORDS, WRITES, b.SPELLING
)

RANGE_START = {
    Op.STAGE: 1, Op.REDUCE: 1, Op.STORE: 2, Op.WMMA: 3, Op.END: 1, Op.CALL: 1, Op.FUNCTION: 1,
}  # fmt: skip
"""By op the number of the first RANGE operand that it closes."""


def closed_ranges(u: UOp) -> tuple[UOp, ...]:
    """The RANGEs among the operands that a node closes."""
    start = RANGE_START.get(u.op)
    return () if start is None else tuple(s for s in u.src[start:] if s.op is Op.RANGE)


def is_expandable(u: UOp) -> bool:
    """Whether an UNROLL below a node expands it."""
    return u.declaration.is_elementwise or u.op in (
        Op.BITCAST, Op.STACK, Op.LOAD, Op.STORE, Op.INDEX, Op.PTRADD, Op.REDUCE, Op.END, Op.AFTER,
        Op.STAGE, Op.WMMA,
    )  # fmt: skip


def priority(u: UOp) -> int:
    """The priority of a RANGE among loops, lower ones outside; ValueError for another node."""
    if u.op is not Op.RANGE:
        raise ValueError(f"the priority of a RANGE, found {u.op.name}")
    if u.tag == r.PLACEHOLDER:
        return b.BestiaryAxisType.PLACEHOLDER.priority
    return b.BestiaryAxisType[args.arg_of(u, args.RangeArg).axis_type.name].priority
