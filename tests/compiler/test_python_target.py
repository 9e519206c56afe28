"""A target in a language that is no C: kernels as Python text, run by this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from uop.compiler import pipeline
from uop.compiler.bundle import Job, run_many
from uop.compiler.pipeline import compile
from uop.compiler.runtime.device import Built, Device, Launch, Runs, as_bytes
from uop.compiler.stages.render.grid import fixed_bound, name_of, specials
from uop.compiler.stages.render.stage import params
from uop.compiler.targets.target import Target
from uop.conformance.backends.compiled import CompiledBackend
from uop.conformance.judging.judge import Judge
from uop.conformance.judging.verdict import Status
from uop.conformance.protocol.types import Hello
from uop.conformance.suite.generate import case_by_id
from uop.conformance.workers.transport import Local
from uop.spec.args import ConstArg, arg_of
from uop.spec.dtype import dtypes
from uop.spec.errors import IncompleteError, UnsupportedError
from uop.spec.graph import slot_of
from uop.spec.latitude import STRICT
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, param

Contents = NDArray[Any]

INFIX = {Op.ADD: "+", Op.MUL: "*", Op.CMPLT: "<"}


class PythonTarget(Target):
    """numpy scalars, which wrap as ints of their dtype do."""

    def kernel(self, linear: UOp, name: str) -> str:
        lines = [f"def {name}({', '.join(f'b{slot_of(u)}' for u in params(linear))}):"]
        for depth, u in enumerate(specials(linear), 1):
            lines.append("  " * depth + f"for {name_of(u)} in range({fixed_bound(u)}):")
        names = {u: name_of(u) for u in specials(linear)}
        depth = len(names) + 1
        for k, u in enumerate(linear.src):
            match u.op:
                case Op.PARAM:
                    names[u] = f"b{slot_of(u)}.view(np.{u.dtype.name})"
                case Op.CONST if u.dtype is dtypes.index:
                    names[u] = str(arg_of(u, ConstArg).value)
                case Op.CONST:
                    names[u] = f"np.{u.dtype.name}({arg_of(u, ConstArg).value})"
                case Op.INDEX:
                    names[u] = f"{names[u.src[0]]}[{names[u.src[1]]}]"
                case Op.LOAD:
                    names[u] = names[u.src[0]]
                case Op.STORE:
                    target, value = (names[s] for s in u.src)
                    lines.append("  " * depth + f"{target} = {value}")
                case op if op in INFIX:
                    names[u] = f"t{k}"
                    a, b = (names[s] for s in u.src)
                    lines.append("  " * depth + f"t{k} = {a} {INFIX[op]} {b}")
                case Op.SPECIAL | Op.STACK:
                    pass
                case _:
                    raise UnsupportedError(f"python: {u.op.name}")
        return "\n".join(lines)

    def source(self, kernels: Sequence[str]) -> str:
        return "\n".join(["import numpy as np", *kernels])

    def open(self) -> Device:
        return PythonDevice()


@dataclass
class PythonSource:
    functions: dict[str, Callable[..., None]]

    def kernel(self, name: str) -> Callable[..., None]:
        return self.functions[name]


class PythonDevice(Runs):
    name, version = "python", "1"

    def build(self, source: str) -> PythonSource:
        functions: dict[str, Any] = {}
        exec(source, functions)
        return PythonSource(functions)

    def allocate(self, size: int) -> Contents:
        return np.empty(size, np.uint8)

    def write(self, memory: Contents, contents: Contents) -> None:
        memory[: contents.nbytes] = as_bytes(contents)

    def read(self, memory: Contents, size: int) -> Contents:
        return memory[:size].copy()

    def launch(self, built: Built, launch: Launch, held: Sequence[Contents]) -> None:
        with np.errstate(over="ignore"):
            built.kernel(launch.kernel)(*(held[b] for b in launch.buffers))

    def free(self, memory: Contents) -> None:
        pass


NATIVE = frozenset({dtypes.int32, dtypes.uint8, dtypes.bool, dtypes.index})
PYTHON = PythonTarget("python", NATIVE, {}, INFIX.keys(), 1)
A, B = (param(k, (2, 3), dtypes.int32) for k in range(2))
INPUTS = {0: np.arange(6, dtype=np.int32).reshape(2, 3), 1: np.full((2, 3), 1 << 30, np.int32)}


class PythonBackend(CompiledBackend):
    target = "python"

    def hello(self) -> Hello:
        listed = frozenset({"PARAM", "CONST", *(op.name for op in INFIX)})
        return replace(super().hello(), ops=listed, dtypes=frozenset(d.name for d in NATIVE))


def test_a_program_compiles_to_it_and_runs() -> None:
    root = UOp(Op.ADD, UOp(Op.MUL, A, B), B)
    compiled = compile(root, PYTHON)
    assert "for gidx0 in range" in compiled.source
    with np.errstate(over="ignore"):
        expected = INPUTS[0] * INPUTS[1] + INPUTS[1]
    np.testing.assert_array_equal(np.asarray(compiled.run(INPUTS)), expected)


def test_many_programs_run_one_by_one() -> None:
    jobs = [Job(compile(UOp(op, A, B), PYTHON), [INPUTS]) for op in (Op.ADD, Op.CMPLT)]
    added, less = run_many(jobs)
    np.testing.assert_array_equal(added, [INPUTS[0] + INPUTS[1]])
    np.testing.assert_array_equal(less, [INPUTS[0] < INPUTS[1]])


def test_an_op_that_it_lacks_is_what_the_spec_decomposes_it_to() -> None:
    negated = compile(UOp(Op.NEG, A), PYTHON)
    assert " * np.int32(-1)" in negated.source
    np.testing.assert_array_equal(np.asarray(negated.run({0: INPUTS[0]})), -INPUTS[0])


def test_an_op_without_spelling_and_decomposition_is_named() -> None:
    with pytest.raises(IncompleteError, match=r"XOR .*\n  a spelling for python"):
        compile(UOp(Op.XOR, A, B), PYTHON)


def test_the_suite_judges_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(pipeline.TARGETS, "python", PYTHON)
    cases = [case_by_id(f"op/{op}/int32/edges/0") for op in ("ADD", "MUL", "CMPLT")]
    statuses = [v.status for v in Judge(Local(PythonBackend()), STRICT).judge(cases)]
    assert statuses == [Status.PASSED] * 3
    monkeypatch.setitem(INFIX, Op.ADD, "-")
    (wrong,) = Judge(Local(PythonBackend()), STRICT).judge(cases[:1])
    assert wrong.status is Status.FAILED
