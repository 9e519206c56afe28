"""Level device, op by op: programs by hand on a device with a name, and each op on shards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from math import prod
from typing import cast

from uop.conformance.judging import storage
from uop.conformance.suite import values
from uop.conformance.suite.choices import Choices, between, data_key
from uop.conformance.suite.levels import written
from uop.conformance.suite.levels.group import Group, Program, program
from uop.conformance.suite.levels.op.elementwise import SHIFTS, operand_dtypes
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.args import BufferArg, DTypeArg, ParamArg
from uop.spec.case import FileCase
from uop.spec.dtype import DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.properties import axis, device
from uop.spec.registry import DECLARATIONS, OpDef, Shape
from uop.spec.uop import UOp, param

PLACE = "D0"
PREFERRED = (dtypes.int32, dtypes.float32)
MOST = 4
"""Devices that hold shards, at most."""


def groups() -> Iterator[Group]:
    yield from _of_hand()
    for declaration in DECLARATIONS.values():
        if _keeps_shards(declaration):
            op, dtype = declaration.op, _dtype(declaration)
            build = partial(_on_shards, declaration, dtype)
            yield Group("device", op.name, dtype.name, "shards", (0, 1, 6), build)


def _of_hand() -> Iterator[Group]:
    """Of the programs by hand those that together hold every op that has a device."""
    left = {op for op, declared in DECLARATIONS.items() if declared.device is not device.null}
    for level in written.OF_OPS:
        for name, cases in written.by_file(level).items():
            for case in cases:
                new = left & _ops(case)
                if new and not case.undefined:
                    left -= new
                    dtype = written.dtype_of(cast(UOp, case.root), case, name)
                    build = partial(_placed, case)
                    yield Group("device", name, dtype, f"placed-{case.id}", (0, 1, 1), build)


def _ops(case: FileCase) -> set[Op]:
    """The ops of a program on inputs; none where it names a device itself."""
    nodes = [] if case.root is None or not case.inputs else case.root.toposort()
    return set() if any(u.device is not None for u in nodes) else {u.op for u in nodes}


def _placed(case: FileCase, choices: Choices, index: int) -> Program:
    """Every input and buffer on the same device, also those of the bodies of calls."""
    root = cast(UOp, case.root)
    there = {
        u: UOp(u.op, *u.src, arg=replace(u.arg, device=PLACE))
        for u in root.toposort()
        if isinstance(u.arg, BufferArg) or (isinstance(u.arg, ParamArg) and u.arg.max is None)
    }
    data = {slot: storage.from_literal(a) for slot, a in case.inputs.items()}
    return program(root.substitute(there), data)


def _keeps_shards(declaration: OpDef) -> bool:
    """Whether each shard of the result is computed of shards alone, with a simple arg at most."""
    is_copy = declaration.axis is axis.of_first and declaration.src == ("T",)
    is_simple = declaration.arg in (None, DTypeArg)
    return (declaration.axis is axis.inherit or is_copy) and is_simple


def _dtype(declaration: OpDef) -> DType:
    taken = declaration.dtypes or PREFERRED
    return next((d for d in PREFERRED if d in taken), taken[0])


def _on_shards(declaration: OpDef, dtype: DType, choices: Choices, index: int) -> Program:
    """One operand in turn is a whole value that goes with each shard; the others are split."""
    arg = DTypeArg(dtypes.float32) if declaration.arg is not None else None
    dts = operand_dtypes(declaration, dtype) if arg is None else (dtype,)
    n = between(choices, 2, MOST)
    rows = n * between(choices, 1, 3)
    on = tuple(f"D{k}" for k in range(n))
    whole = (index + 1) % len(dts) if len(dts) > 1 else None
    operands = [
        param(k, (3,), d) if k == whole else param(k, (rows, 3), d, on) for k, d in enumerate(dts)
    ]
    data = [_data(u.dtype, u.shape, choices) for u in operands]
    if declaration.op in SHIFTS:
        data[1] = data[1] % np_dtype(dts[1]).type(dts[0].bits)
    return program(UOp(declaration.op, *operands, arg=arg), data)


def _data(dtype: DType, shape: Shape, choices: Choices) -> Array:
    """Without zeros, so that no quotient lacks a value."""
    return values.draw_positive(dtype, prod(shape), data_key(choices)).reshape(shape)
