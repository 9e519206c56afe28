"""Generate level device, op by op: programs by hand on a named device, each op on shards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels import written
from uop.conformance.suite.levels.group import Generated, Group, group, program
from uop.conformance.suite.levels.op.absent import positive
from uop.conformance.suite.levels.op.elementwise import operand_dtypes
from uop.spec.args import BufferArg, DTypeArg, ParamArg
from uop.spec.case import FileCase
from uop.spec.dtype import DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.properties import axis, device
from uop.spec.registry import DECLARATIONS, OpDef
from uop.spec.uop import UOp, param

DEVICE = "D0"
PREFERRED = (dtypes.int32, dtypes.float32)
MOST = 4
"""The most devices that hold shards."""


def groups() -> Iterator[Group]:
    yield from _by_hand()
    for declaration in DECLARATIONS.values():
        if _keeps_shards(declaration):
            op, dtype = declaration.op, _dtype(declaration)
            yield group("device", op, dtype, "shards", (0, 1, 6), _on_shards, declaration, dtype)


def _by_hand() -> Iterator[Group]:
    """Yield programs written by hand that together hold every op that has a device."""
    left = {op for op, declared in DECLARATIONS.items() if declared.device is not device.null}
    for level in written.OF_OPS:
        for name, cases in written.by_file(level).items():
            for case in cases:
                new = left & _ops(case)
                if new and not case.undefined:
                    left -= new
                    op, title = Op[name], f"placed-{case.id}"
                    dtype = written.dtype_of(cast(UOp, case.root), case, op)
                    yield group("device", op, dtype, title, (0, 1, 1), _on_device, case)


def _ops(case: FileCase) -> set[Op]:
    """Return the ops of a program on inputs; none where it names a device itself."""
    nodes = [] if case.root is None or not case.inputs else case.root.toposort()
    return set() if any(u.device is not None for u in nodes) else {u.op for u in nodes}


def _on_device(case: FileCase, choices: Choices, index: int) -> Generated:
    """Put every input and buffer on the same device, also those of the bodies of calls."""
    root = cast(UOp, case.root)
    new = {
        u: UOp(u.op, *u.src, arg=replace(u.arg, device=DEVICE))
        for u in root.toposort()
        if isinstance(u.arg, BufferArg) or (isinstance(u.arg, ParamArg) and u.arg.max is None)
    }
    return program(root.substitute(new), written.inputs_of(case))


def _keeps_shards(declaration: OpDef) -> bool:
    """Return whether each shard of the result depends on shards alone; args are simple."""
    is_copy = declaration.axis is axis.of_first and declaration.src == ("T",)
    is_simple = declaration.arg in (None, DTypeArg)
    return (declaration.axis is axis.inherit or is_copy) and is_simple


def _dtype(declaration: OpDef) -> DType:
    taken = declaration.dtypes or PREFERRED
    return next((d for d in PREFERRED if d in taken), taken[0])


def _on_shards(declaration: OpDef, dtype: DType, choices: Choices, index: int) -> Generated:
    """Use a whole value for each operand in turn, and shards for the others."""
    arg = DTypeArg(dtypes.float32) if declaration.arg is not None else None
    dts = operand_dtypes(declaration, dtype) if arg is None else (dtype,)
    n = choices.between(2, MOST)
    rows = n * choices.between(1, 3)
    on = tuple(f"D{k}" for k in range(n))
    whole = (index + 1) % len(dts) if len(dts) > 1 else None
    operands = [
        param(k, (3,), d) if k == whole else param(k, (rows, 3), d, on) for k, d in enumerate(dts)
    ]
    data = positive(declaration.op, operands, choices)
    return program(UOp(declaration.op, *operands, arg=arg), data)
