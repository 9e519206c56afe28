"""Kernels as nests of loops: run as Python the lines give what the interpreter gives."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from uop import Op, Tensor, UOp, compile, const, dtypes, evaluate, param, parse, variable
from uop.spec.graph import base_of, kernel_calls, kernels, slot_of, slots_of
from uop.spec.kernel.optimization import parse_optimizations
from uop.spec.text.nest import nests
from uop.spec.text.uop_file import read_file

ROOT = Path(__file__).parents[2]
X, Y = param(0, (4, 6), dtypes.int32), param(1, (6, 4), dtypes.int32)
DATA = {
    0: np.arange(24, dtype=np.int32).reshape(4, 6) * 7 % 11 - 4,
    1: np.arange(24, dtype=np.int32).reshape(6, 4) * 5 % 13 - 6,
}
PROGRAMS = {
    "product": Tensor(X) @ Tensor(Y),
    "largest of a sum": (Tensor(X) + Tensor(Y).T).max(1),
    "padded": Tensor(X).pad((1, 2), (0, 1)).flip(0).sum(0),
    "chosen": (Tensor(X) < 3).where(Tensor(X) * 2 - 1, -Tensor(X) // 2),
    "two folds": Tensor(X) - Tensor(X).sum(1).reshape(4, 1) * Tensor(X).max(),
}
SEQUENCES = ("SPLIT(0, 2, UPCAST)", "SPLIT(0, 2, LOCAL)", "PADTO(0, 8)", "SPLIT(2, 3, UNROLL)")
CASES = [*((name, "") for name in PROGRAMS), *(("product", each) for each in SEQUENCES)]
LOOP = re.compile(r"(\w+) in (\w+)(?: \(\w+\))?")
FOLDS = {"ADD": "sum", "MAX": "max"}


def as_python(lines: list[str]) -> str:
    """The statements of kernels, in which the loops of work items are loops too."""
    code, inner = [], ""
    for line in lines:
        if line.startswith("kernel"):
            head, _, memory = line.partition(":")
            items = LOOP.findall(head.partition(" for ")[2])
            inner = "  " * len(items)
            code += [
                f"b{k} = memory[{slot}]"
                for k, slot in enumerate(re.findall(r"[A-Z]+ (\d+)", memory))
            ]
            code += [f"{'  ' * k}for {name} in range({n}):" for k, (name, n) in enumerate(items)]
            code.append(f"{inner}acc0, acc1, acc2, acc3 = {{}}, {{}}, {{}}, {{}}")
            continue
        indent = inner + line[: len(line) - len(line.lstrip())].removeprefix("  ")
        text = line.strip()
        fold = re.fullmatch(r"(t\d+) = (\w+) for (.*?\)): (.*)", text)
        gated = re.fullmatch(r"(.*? = )([^()]*|.*\)) if ([^()]*)", text)
        if fold:
            loops = " ".join(f"for {name} in range({n})" for name, n in LOOP.findall(fold[3]))
            text = f"{fold[1]} = {FOLDS[fold[2]]}({fold[4]} {loops})"
        elif text.startswith("for "):
            ((name, n),) = LOOP.findall(text)
            text = f"for {name} in range({n}):"
        elif gated:
            text = f"if {gated[3]}: {gated[1]}{gated[2]}"
        code.append(indent + text)
    return "\n".join(code)


@pytest.mark.parametrize("stage", ["rangeify", "optimize", "linearize"])
@pytest.mark.parametrize(("name", "sequence"), CASES)
def test_the_lines_are_the_program(name: str, sequence: str, stage: str) -> None:
    root = PROGRAMS[name].uop
    compiled = compile(root, optimizations=[parse_optimizations(sequence)])
    memory: dict[int, Any] = defaultdict(lambda: defaultdict(int))
    inputs = {slot: DATA[slot] for slot in slots_of(root)}
    memory |= {slot: list(map(int, data.ravel())) for slot, data in inputs.items()}
    (result,) = {
        slot_of(base_of(call.src[1])) for call in kernel_calls(compiled.stages[stage])[-1:]
    }
    exec(as_python(nests(compiled.stages[stage])), {"memory": memory})
    wanted = np.asarray(evaluate(root, inputs)).ravel().tolist()
    assert [memory[result][k] for k in range(len(wanted))] == wanted


FILES = sorted((ROOT / "conformance" / "suite" / "cases" / "kernel").glob("*.uop"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_store_of_a_kernel_is_one_line(path: Path) -> None:
    for case in read_file(path).cases:
        if case.root is None:
            continue
        lines = nests(case.root)
        stores = sum(
            u.op is Op.STORE for call in kernel_calls(case.root) for u in call.src[0].toposort()
        )
        assert sum(re.match(r" +\w+(\[.*\])? = ", line) is not None for line in lines) >= stores
        assert len([line for line in lines if line.startswith("kernel")]) == len(
            kernel_calls(case.root)
        )


def test_a_value_that_is_used_twice_has_a_name() -> None:
    x = param(0, (8,), dtypes.float32)
    half = UOp(Op.SIN, x)
    root = UOp(Op.MUL, UOp(Op.ADD, half, const(1.44, dtypes.float32)), half)
    lines = nests(compile(root, optimizations=()).stages["rangeify"])
    assert lines == [
        "kernel 0: b0 = BUFFER 1, b1 = BUFFER 0",
        "  for r0 in 8 (LOOP):",
        "    t0 = sin(b1[r0])",
        "    b0[r0] = (t0 + 1.44) * t0",
    ]


def test_a_name_is_that_of_one_value() -> None:
    x = Tensor(param(0, (2, 8), dtypes.float32))
    squared = (x - 1).sin()
    lines = nests(compile((squared * squared).sum().uop, optimizations=()).stages["rangeify"])
    assert lines[1:] == [
        "  t0 = ADD for r0 in 2 (REDUCE), r1 in 8 (REDUCE):",
        "    t1 = sin(b1[r0 * 8 + r1] - 1)",
        "    t1 * t1",
        "  b0[0] = t0",
    ]


def test_a_symbolic_size_is_an_argument() -> None:
    root = UOp(Op.NEG, param(1, (variable(0, 1, 8), 2), dtypes.int32))
    lines = nests(compile(root, optimizations=()).stages["select"])
    assert lines == [
        "kernel 0 for gidx0 in b2 * 2: b0 = BUFFER 2, b1 = BUFFER 1, b2 = PARAM 0",
        "  b0[gidx0] = -b1[gidx0]",
    ]


def test_what_is_used_again_and_again_is_written_once() -> None:
    doubled = "".join(f"%{k} = ADD %{k - 1}, %{k - 1}\n" for k in range(2, 200))
    root = parse(
        "%0 = PARAM [4] {slot=0, dtype=int32, addrspace=GLOBAL}\n"
        f'%1 = SPECIAL 4 {{name="gidx0"}}\n{doubled}'
        "%200 = INDEX %0, %199\n%201 = LOAD %200\n%202 = STORE %200, %201\n%203 = SINK %202\n"
        "%204 = BUFFER [4] {slot=0, dtype=int32}\n%205 = CALL %203, %204\n%206 = SINK %205\n"
    )
    lines = nests(root)
    assert len(lines) < 200
    assert max(map(len, lines)) < 200


def test_a_tensor_program_has_no_nest() -> None:
    assert nests(X) == []
    assert kernels(X) == []


def test_the_command_marks_what_a_stage_changes(uop: Any) -> None:
    words = ("compile", "--nest", "--opt", "", str(ROOT / "examples" / "softmax.uop"), "--stage")
    optimized = uop(*words, "optimize").out.splitlines()
    assert [line for line in optimized if line.startswith(">")] == [">   for r0 in 3 (GLOBAL):"]
    assert not any(line.startswith(">") for line in uop(*words, "expand").out.splitlines())
    selected = uop(*words, "select").out.splitlines()
    assert ">     acc0[0] = max(acc0[0], b1[gidx0 * 5 + r2])" in selected
    outcome = uop(*words, "callify")
    assert (outcome.code, outcome.err) == (2, "error: --nest: callify leaves no kernel\n")
    assert "expected --stage too" in uop(*words[:-1]).err
