"""Declarations of the codegen ops, which generated kernels use."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from uop.spec import args
from uop.spec import latitude as lat
from uop.spec.args import arg_of
from uop.spec.dtype import dtypes
from uop.spec.ops.constraints import (
    are_effects,
    have_values,
    is_location,
    one_device,
    one_dtype,
    one_shape,
    op_among,
)
from uop.spec.ops.kinds import counter, declare, effect
from uop.spec.ops.names import Op
from uop.spec.properties import device, dtype, shape
from uop.spec.properties.words import from_arg, of_src
from uop.spec.registry import AccessKind, Clause, Constraint, Shape

if TYPE_CHECKING:
    from uop.spec.registry import Node

WARP = 32
"""The number of work items that hold the fragments of one WMMA."""


def fragment_shapes(arg: args.WmmaArg) -> tuple[Shape, Shape, Shape] | None:
    """The shapes of A, B and acc in one work item; None if a matrix does not split evenly."""
    elements = (arg.m * arg.k, arg.k * arg.n, arg.m * arg.n)
    if min(arg.m, arg.n, arg.k) < 1 or any(count % WARP for count in elements):
        return None
    a, b, acc = (count // WARP for count in elements)
    return (a,), (b,), (acc,)


PROGRAM_PARTS = (Op.LINEAR, Op.SOURCE, Op.BINARY)


def _wrong_parts(u: Node) -> str | None:
    found = tuple(s.op for s in u.src)
    return None if found == PROGRAM_PARTS else " ".join(op.name for op in found)


def _no_condition(u: Node) -> str | None:
    gate = u.src[0]
    fits = gate.dtype is dtypes.bool and gate.shape == ()
    return None if fits else f"{gate.dtype.name}{list(gate.shape)}"


def _not_global(u: Node) -> str | None:
    found = u.src[0].addrspace
    return None if found is args.AddrSpace.GLOBAL else f"{found}, from {u.src[0].op.name}"


def _no_fragments(u: Node) -> str | None:
    arg = arg_of(u, args.WmmaArg)
    return None if fragment_shapes(arg) else f"({arg.m}, {arg.n}, {arg.k})"


def _wrong_dtypes(u: Node) -> str | None:
    arg, found = arg_of(u, args.WmmaArg), tuple(s.dtype for s in u.src)
    fits = found == (arg.dtype_in, arg.dtype_in, arg.dtype_out) and arg.dtype_in.is_float
    return None if fits else " ".join(d.name for d in found)


def _wrong_fragments(u: Node) -> str | None:
    expected = fragment_shapes(arg_of(u, args.WmmaArg))
    found = tuple(s.shape for s in u.src)
    return None if expected in (None, found) else " ".join(map(str, found))


def _no_result(u: Node) -> str | None:
    arg = arg_of(u, args.InsArg, args.CustomArg)
    if any(dim < 0 for dim in arg.shape):
        return f"{arg.shape}"
    return f"void{list(arg.shape)}" if arg.dtype is dtypes.void and arg.shape else None


_effect = partial(effect, "codegen", device=device.null)
RESULT = "sizes are 0 or more; void has shape ()"
REGISTERED = "a meaning is registered under its name"

counter(
    "codegen",
    Op.SPECIAL,
    "The index of this work item along one dimension of the launch: 0 to bound - 1.",
    arg=args.SpecialArg,
)

_effect(
    Op.BARRIER,
    "Every work item of a workgroup waits here, once its deps are done, for all the others.",
    ("deps*",),
    are_effects("BARRIER.c1"),
    Clause("BARRIER.u1", "what one work item of a group waits at, all of them reach"),
)

_effect(
    Op.IF,
    "Run the instructions up to ENDIF in the work items whose gate is true.",
    ("gate",),
    Constraint("IF.c1", "the gate is a bool of shape ()", _no_condition),
    Clause("IF.u1", "an IF stands in a LINEAR, which says what it encloses (D-062)"),
    Clause("IF.u2", "the gate is not UNSPECIFIED"),
)

_effect(
    Op.ENDIF,
    "The end of what an IF encloses.",
    ("if",),
    op_among("ENDIF.c1", "the operand is an IF", 0, Op.IF),
)

_effect(
    Op.ATOMICADD,
    "Add val to what stands at the location idx, as one step that no other access divides.",
    ("idx", "val"),
    is_location("ATOMICADD.c1", "idx"),
    one_dtype("ATOMICADD.c2"),
    one_shape("ATOMICADD.c3", "idx and val"),
    one_device("ATOMICADD.c4"),
    access=AccessKind.ADD,
    device=device.first_that_has_one,
)

declare(
    "codegen",
    Op.WMMA,
    "A B + acc on matrices that the 32 work items of a warp hold in fragments.",
    ("A", "B", "acc"),
    Constraint("WMMA.c1", "each matrix splits into 32 equal fragments", _no_fragments),
    Constraint("WMMA.c2", "A and B are of dtype_in, a float; acc is of dtype_out", _wrong_dtypes),
    Constraint("WMMA.c3", "operands have the shapes of their fragments", _wrong_fragments),
    one_device("WMMA.c4"),
    Clause("WMMA.u1", "all work items of a warp take part"),
    Clause("WMMA.u2", "the work items of a group are whole warps"),
    Clause("WMMA.n1", "it is known which work item holds which elements"),
    arg=args.WmmaArg,
    dtype=of_src(2, "dtype"),
    shape=of_src(2, "shape"),
    latitude=lat.WMMA,
)

declare(
    "codegen",
    Op.GETADDR,
    "The address of a buffer on a device, as a number.",
    ("buf",),
    Constraint("GETADDR.c1", "buf is a location in GLOBAL memory", _not_global),
    Clause("GETADDR.n1", "the first element of buf is one of a buffer"),
    arg=args.GetAddrArg,
    dtype=dtype.always(dtypes.uint64),
    shape=shape.scalar,
    device=device.null,
    undefined="Which address: only that buffers do not overlap and elements are aligned.",
)

declare(
    "codegen",
    Op.INS,
    "One machine instruction by name; a registry says what it computes.",
    ("srcs*",),
    Constraint("INS.c1", RESULT, _no_result),
    have_values("INS.c2"),
    one_device("INS.c3"),
    Clause("INS.n1", REGISTERED),
    Clause("INS.n2", "its operands have a dtype that the instruction takes"),
    arg=args.InsArg,
    dtype=from_arg("dtype"),
    shape=from_arg("shape"),
)

declare(
    "codegen",
    Op.CUSTOM,
    "Source text put into generated code as it is; a registry says what it computes.",
    ("args*",),
    Constraint("CUSTOM.c1", RESULT, _no_result),
    have_values("CUSTOM.c2"),
    one_device("CUSTOM.c3"),
    Clause("CUSTOM.n1", REGISTERED),
    arg=args.CustomArg,
    dtype=from_arg("dtype"),
    shape=from_arg("shape"),
)

_effect(
    Op.CUSTOMFUNCTION,
    "A function of the device by name, run through CALL; a registry says what it computes.",
    ("meta*",),
    have_values("CUSTOMFUNCTION.c1"),
    Clause("CUSTOMFUNCTION.n1", REGISTERED),
    Clause("CUSTOMFUNCTION.n2", "its numbers are CONSTs"),
    arg=args.CustomFunctionArg,
)

_effect(
    Op.PROGRAM,
    "A compiled kernel: its instructions, source and machine code (empty until built).",
    ("linear", "source", "binary"),
    Constraint("PROGRAM.c1", "src is LINEAR, SOURCE, BINARY", _wrong_parts),
)

_effect(Op.SOURCE, "Rendered source code.", (), arg=args.SourceArg)
