"""Load the cases written by hand: those in the files of cases/LEVEL, in the order of names.

Inputs that a file lacks are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import cast

import numpy as np

from uop.conformance.judging import storage
from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels.group import Generated, Group, group, program
from uop.conformance.suite.values import draw_ordinary
from uop.interpreter.inputs import with_numbers
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.args import BufferArg, ParamArg, arg_of
from uop.spec.case import FileCase
from uop.spec.dtype import DType
from uop.spec.graph import slots_of
from uop.spec.ops.names import Op
from uop.spec.properties import device
from uop.spec.properties.shape import size
from uop.spec.properties.symbolic import bind, is_variable, variables
from uop.spec.registry import DECLARATIONS
from uop.spec.text.uop_file import parse_file
from uop.spec.uop import UOp

DEVICE = "D0"
"""The device on which programs are put that name none."""
OF_OPS = ("op", "kernel")
"""The levels whose files are about one op each."""


def groups(level: str) -> Iterator[Group]:
    """Yield a group of one for every case with a meaning; some levels name files after ops."""
    for name, cases in by_file(level).items():
        for case in cases:
            root = case.root
            if root is not None and not case.undefined:
                op, prefix = (Op[name], "hand") if level in OF_OPS else (None, f"hand-{name}")
                title, dtype = f"{prefix}-{case.id or name}", dtype_of(root, case, op)
                yield group(level, op, dtype, title, (1, 1, 1), _program, root, case)


@cache
def by_file(level: str) -> dict[str, tuple[FileCase, ...]]:
    """Return the cases by the name of their file, without suffix: in some levels their op.

    Variables are bound to their inputs, since a backend gets numbers for all sizes.
    """
    folder = files("uop.conformance.suite") / "cases" / level
    texts = {file.name.removesuffix(".uop"): file.read_text("utf-8") for file in folder.iterdir()}
    if level == "op":
        texts |= {op.name: d.cases for op, d in DECLARATIONS.items() if d.cases}
    return {
        name: tuple(map(with_sizes, parse_file(text, f"{name}.uop").cases))
        for name, text in sorted(texts.items())
    }


def with_sizes(case: FileCase) -> FileCase:
    """Return a case with its variables bound to their inputs."""
    if case.root is None or not variables(case.root):
        return case
    root, left = with_numbers(case.root, inputs_of(case))
    return replace(case, root=root, inputs={slot: case.inputs[slot] for slot in left})


def dtype_of(root: UOp, case: FileCase, op: Op | None) -> DType:
    """Return the dtype of the first input; of a program without one, that of its first node.

    Where the op of the file does not take that one, its operand has another.
    """
    nodes = root.toposort()
    dtype = case.inputs[min(case.inputs)].dtype if case.inputs else nodes[0].dtype
    if op and DECLARATIONS[op].dtypes and dtype not in DECLARATIONS[op].dtypes:
        dtype = next(u.src[0].dtype for u in nodes if u.op is op)
    return dtype


def inputs_of(case: FileCase) -> dict[int, Array]:
    """Return the inputs of a case by slot, in storage dtype."""
    return {slot: storage.from_literal(a) for slot, a in case.inputs.items()}


def _program(root: UOp, case: FileCase, choices: Choices, index: int) -> Generated:
    return program(root, inputs_of(case))


def placed() -> Iterator[Group]:
    """Yield groups of one on a named device, which together hold every op that has a device."""
    left = {op for op, declared in DECLARATIONS.items() if declared.device is not device.null}
    for level in OF_OPS:
        for name, cases in by_file(level).items():
            for case in cases:
                new = left & _ops_on_inputs(case)
                if new and not case.undefined:
                    left -= new
                    op, title = Op[name], f"placed-{case.id}"
                    dtype = dtype_of(cast(UOp, case.root), case, op)
                    yield group("device", op, dtype, title, (0, 1, 1), _on_device, case)


def _ops_on_inputs(case: FileCase) -> set[Op]:
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
    return program(root.substitute(new), inputs_of(case))


Draw = Callable[[UOp, int], Array | None]
"""Draws the input in a slot, or leaves it out."""


def inputs_and_drawn(case: FileCase, root: UOp, draw: Draw) -> tuple[dict[int, Array], list[int]]:
    """The inputs of a case, and drawn ones for those that it lacks, with the slots of the latter. A
    missing variable is the largest number of its range.
    """
    found = inputs_of(case)
    missing = {slot: u for slot, u in slots_of(root).items() if slot not in found}
    sizes = {u: slot for slot, u in slots_of(root).items() if is_variable(u)}
    for u, slot in sizes.items():
        if slot in missing:
            found[slot] = np.array(arg_of(u, ParamArg).max)
    numbers = {u: int(found[slot]) for u, slot in sizes.items()}
    leaves = {slot: bind(u, numbers) for slot, u in missing.items() if slot not in found}
    data = {slot: draw(leaf, slot) for slot, leaf in leaves.items()}
    drawn = {slot: array for slot, array in data.items() if array is not None}
    return found | drawn, sorted(missing.keys() & (found | drawn).keys())


def ordinary(u: UOp, key: int) -> Array | None:
    """Ordinary values of the suite for an input; None for a BUFFER, which may hold anything."""
    if u.op is Op.BUFFER:
        return None
    return draw_ordinary(u.dtype, size(u.shape), key).reshape(u.shape)


def within_bounds(u: UOp, key: int) -> Array:
    """Numbers for an input: an integer may be an index, and 0 and 1 lie in nearly all memory."""
    random = np.random.default_rng(key)
    numbers = (
        random.standard_normal(u.shape) if u.dtype.is_float else random.integers(0, 2, u.shape)
    )
    return np.asarray(numbers).astype(np_dtype(u.dtype))
