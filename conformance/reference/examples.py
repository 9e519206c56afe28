"""Finds or builds a small program per op, and per word of an edition."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import cast

import numpy as np

from uop.conformance.judging.storage import file_text, numbered
from uop.conformance.reference.glossary import table_of
from uop.conformance.reference.words import Section
from uop.conformance.suite.levels.op.elementwise import operand_dtypes
from uop.conformance.suite.levels.written import by_file, inputs_of
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.numeric.storage import STORED, Array, np_dtype
from uop.interpreter.rules.codegen import custom
from uop.interpreter.show import show_value
from uop.interpreter.tensor.evaluation import FullOutput
from uop.interpreter.values import Value
from uop.spec.case import FileCase
from uop.spec.dtype import DType, Kind, dtypes
from uop.spec.editions import EDITIONS
from uop.spec.errors import UndefinedError, UnsupportedError
from uop.spec.graph import slots_of
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, OpDef
from uop.spec.text.printer import in_place
from uop.spec.text.program import print_program
from uop.spec.text.uop_file import parse_file
from uop.spec.uop import UOp, param

UNDEFINED_CASES = ("undefined", "op", "kernel")
"""The folders of cases in which programs without meaning stand."""
_FLOATS = ((2.5, -7.0, 0.5, 16.0), (2.0, -3.0, 0.25, 16.0), (1.0, 1.0, 1.0, 1.0))
_INTS = ((7, -7, 7, -8), (2, 2, -3, 3), (1, 1, 1, 1))
_COUNTS = (2, 1, 0, 3)
_WORDS = ((0, 1, 2, 3), (0, 0, 1, 1))
_BOOLS = ((True, False, True, False), (True, True, False, False), (True, True, True, True))


@dataclass(frozen=True, slots=True)
class Example:
    """A program that shows an op, and its inputs by slot."""

    op: Op
    root: UOp
    inputs: Mapping[int, Array]

    @property
    def op_node(self) -> UOp:
        """The node that the example is about, not a shape that its user has in place."""
        nodes = [u for u in self.root.toposort() if u.op is self.op]
        return next((u for u in nodes if in_place(u) is None), nodes[0])

    @property
    def result(self) -> FullOutput:
        return evaluate_full(self.root, self.inputs)

    @property
    def text(self) -> str:
        """The program, its inputs, and its results as `uop run` prints them."""
        lines = [print_program(self.root).rstrip()]
        lines += [show_value(f"input {k} = ", Value(a)) for k, a in sorted(self.inputs.items())]
        return "\n".join([*lines, "", *results_text(self.result)]) + "\n"


@custom("({0} ^ ({0} >> 1))")
def gray_code(u: UOp, a: Array) -> Array:
    """The meaning of the text in the example of CUSTOM."""
    return np.asarray(a ^ (a >> a.dtype.type(1)))


def results_text(result: FullOutput) -> list[str]:
    """The results by number."""
    return [
        show_value(f"{k} : {STORED[v.data.dtype].name}[{','.join(map(str, v.data.shape))}] = ", v)
        for k, v in numbered(result).items()
    ]


def example_of(op: Op) -> Example | None:
    """The example of an op; None where no program shows it."""
    declaration = DECLARATIONS[op]
    if declaration.takes_values:
        return _elementwise(declaration)
    own = [case for case in _written() if case.id == op.name]
    cases = [*own, *by_file("op").get(op.name, ()), *_written()]
    for case in cases:
        root = None if case.undefined else case.root
        if root is not None and any(u.op is op for u in root.toposort()):
            return Example(op, root, inputs_of(case))
    return None


def decomposition_of(example: Example) -> Section:
    """The decomposition of the example's node; an empty section without one."""
    made = example.op_node.decompose()
    return Section("Decomposition", code="" if made is None else print_program(made))


def gradient_of(example: Example) -> Section:
    """The gradient of each operand of the example's node, for the gradient g of its result."""
    u, declaration = example.op_node, example.op_node.declaration
    if declaration.gradient is None or not u.dtype.is_float:
        return Section("Gradient")
    slot = max((*slots_of(u), 0)) + 1
    g = param(slot, u.shape, u.dtype)
    try:
        parts = declaration.gradient(UOp, u, g)  # type: ignore[arg-type]
    except UnsupportedError as error:
        return Section("Gradient", text=f"None: {error}.")
    names = [declaration.src[min(k, len(declaration.src) - 1)] for k in range(len(u.src))]
    reached = [(name.rstrip("?*"), part) for name, part in zip(names, parts, strict=True) if part]
    if not reached:
        return Section("Gradient", text="It stops here.")
    head = f"; g is PARAM {slot}; the TUPLE holds that of {', '.join(n for n, _ in reached)}"
    made = UOp(Op.TUPLE, *(cast(UOp, part) for _, part in reached))
    return Section("Gradient", code=f"{head}\n{print_program(made)}")


@cache
def _written() -> tuple[FileCase, ...]:
    file = files("uop.conformance.reference") / "examples.uop"
    return parse_file(file.read_text("utf-8"), file.name).cases


def usual_dtype(declaration: OpDef) -> DType:
    """The dtype that shows an op best."""
    for dtype in (dtypes.float32, dtypes.int32, dtypes.uint64, dtypes.bool):
        if dtype in declaration.dtypes:
            return dtype
    return declaration.dtypes[0]


def _elementwise(declaration: OpDef) -> Example:
    usual = usual_dtype(declaration)
    kinds = operand_dtypes(declaration, usual)
    columns = []
    for position, dtype in enumerate(kinds):
        table = _FLOATS if dtype.is_float else _BOOLS if dtype.kind is Kind.BOOL else _INTS
        row = (_WORDS if dtype is dtypes.uint64 else table)[position]
        if declaration.is_shift and position == 1:
            row = _COUNTS
        columns.append(np.array(row, np_dtype(dtype)))
    params = [param(k, (4,), dtype) for k, dtype in enumerate(kinds)]
    return Example(declaration.op, UOp(declaration.op, *params), dict(enumerate(columns)))


@cache
def undefined_cases() -> dict[str, list[FileCase]]:
    """The cases written by hand that have no meaning, by the clause that does not hold."""
    by_label: dict[str, list[FileCase]] = {}
    for name in UNDEFINED_CASES:
        folder = files("uop.conformance.suite") / "cases" / name
        for file in sorted(folder.iterdir(), key=lambda f: f.name):
            for case in parse_file(file.read_text("utf-8"), file.name).cases:
                if case.undefined_label:
                    by_label.setdefault(case.undefined_label, []).append(case)
    return by_label


def undefined_example(label: str) -> tuple[str, tuple[UndefinedError, ...]] | None:
    """A program for which a clause does not hold, and the error, if any; None without one."""
    case, *_ = undefined_cases().get(label, [None])
    if case is None or case.root is None:
        return None
    text = file_text(replace(case, id=""))
    try:
        evaluate_full(case.root, inputs_of(case))
    except UndefinedError as error:
        return text, (error,)
    return text, ()


@dataclass(frozen=True, slots=True)
class Reading:
    """A program of an edition, and the core program that it is parsed to."""

    text: str
    core: str


@cache
def readings(edition: str) -> Mapping[str, Reading]:
    """For each word of an edition the shortest program here that contains it."""
    programs = table_of("readings").get(edition, [])
    texts = [f"edition {edition}\n{program}" for program in programs]
    for example in filter(None, map(example_of, DECLARATIONS)):
        with suppress(UnsupportedError):
            texts.append(EDITIONS[edition].print(example.root))
    by_word: dict[str, Reading] = {}
    for text in sorted(texts, key=len):
        words = {line.split()[2] for line in text.splitlines()[1:]}
        if not words <= by_word.keys():
            core = print_program(EDITIONS[edition].parse(text))
            by_word |= {word: Reading(text, core) for word in words - by_word.keys()}
    return by_word
