"""The cases written by hand: those of the files in cases/LEVEL, in the order of their names."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from importlib.resources import files

from uop.conformance.judging import storage
from uop.conformance.suite.case import MIXED
from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels.group import Group, Program, program
from uop.spec.case import FileCase
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.text.uop_file import parse_file
from uop.spec.uop import UOp

OF_OPS = ("op", "kernel")
"""The levels whose files are about one op each."""


def groups(level: str) -> Iterator[Group]:
    """A group of one for every case with a meaning; files of some levels have the name of an op."""
    for name, cases in by_file(level).items():
        for case in cases:
            root = case.root
            if root is not None and not case.undefined:
                build = partial(_program, root, case)
                op, prefix = (name, "hand") if level in OF_OPS else (MIXED, f"hand-{name}")
                group = f"{prefix}-{case.id or name}"
                yield Group(level, op, dtype_of(root, case, op), group, (1, 1, 1), build)


@cache
def by_file(level: str) -> dict[str, tuple[FileCase, ...]]:
    """The cases by the name of their file, without its suffix."""
    folder = files("uop.conformance.suite") / "cases" / level
    return {
        file.name.removesuffix(".uop"): parse_file(file.read_text("utf-8"), file.name).cases
        for file in sorted(folder.iterdir(), key=lambda f: f.name)
    }


def dtype_of(root: UOp, case: FileCase, op: str) -> str:
    """That of the first input; of a program without one, that of its first node.

    Where the op of the file does not take that one, its operand has another.
    """
    nodes = root.toposort()
    dtype = case.inputs[min(case.inputs)].dtype if case.inputs else nodes[0].dtype
    if op != MIXED and DECLARATIONS[Op[op]].dtypes and dtype not in DECLARATIONS[Op[op]].dtypes:
        dtype = next(u.src[0].dtype for u in nodes if u.op.name == op)
    return dtype.name


def _program(root: UOp, case: FileCase, choices: Choices, index: int) -> Program:
    return program(root, {slot: storage.from_literal(a) for slot, a in case.inputs.items()})
