"""CALLs of kernels among ops on whole values, and FUNCTIONs that are compiled once."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from kernels import I32, add, argument, kernel_param, load, loop, store

from uop.compiler.loaded import Compiled
from uop.compiler.pipeline import compile
from uop.interpreter.accept import accept
from uop.interpreter.adversary.evaluation import evaluate_adversarially
from uop.interpreter.evaluate import Output, evaluate
from uop.interpreter.numeric.storage import Array
from uop.spec.args import (
    AxisType,
    CustomFunctionArg,
    FlipArg,
    GetTupleArg,
    PadArg,
    PadFill,
    ReduceArg,
)
from uop.spec.errors import LackingError, UndefinedError, UnsupportedError
from uop.spec.frontend.function import function
from uop.spec.frontend.tensor import Tensor
from uop.spec.graph import PRECOMPILED, slots_of
from uop.spec.kernel.optimization import Split
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, param

N = 6
X, Y, Z = (argument(k, N) for k in range(3))
INPUT = param(5, (N,), I32)
DATA = np.arange(1, 1 + N, dtype=np.int32)


def plus(read: int = 1, by: int = 100) -> UOp:
    """A kernel: out[i] = in[i] + by; with read=0 in place."""
    r = loop(0, N)
    value = UOp(Op.ADD, load(kernel_param(read, N), r), const(by, I32))
    return UOp(Op.SINK, UOp(Op.END, store(kernel_param(0, N), r, value), r))


def call(out: UOp, *read: UOp) -> UOp:
    return UOp(Op.CALL, plus(len(read)), out, *read)


def after(place: UOp, *effects: UOp) -> UOp:
    return UOp(Op.AFTER, place, *effects)


def stored(place: UOp, value: UOp) -> UOp:
    return UOp(Op.STORE, place, value)


def negated(u: UOp) -> UOp:
    return UOp(Op.NEG, u)


def shrunk(u: UOp) -> UOp:
    return UOp(Op.SHRINK, u, dims((1,)), dims((N - 2,)))


def padded(u: UOp) -> UOp:
    return UOp(Op.PAD, u, dims((1,)), dims((N,)), arg=PadArg(PadFill.INVALID))


LEFT = after(X, call(X, Y))
SQUARE = UOp(Op.MUL, Y, Y)
IN_PLACE = after(Y, UOp(Op.CALL, plus(0), after(Y, stored(X, SQUARE))))
FIRST = call(X, Y)
SECOND = UOp(Op.CALL, plus(), Y, after(X, FIRST))
THIRD = UOp(Op.CALL, plus(0), after(X, SECOND))
HALF = UOp(Op.STORE, shrunk(Y), shrunk(negated(INPUT)))

PROGRAMS: dict[str, tuple[UOp, Mapping[int, Array], Output]] = {
    "after alone": (LEFT, {1: DATA}, DATA + 100),
    "an op on what a kernel leaves": (negated(LEFT), {1: DATA}, -DATA - 100),
    "a view of what a kernel leaves": (shrunk(LEFT), {1: DATA}, DATA[1:-1] + 100),
    "a call alone": (call(X, Y), {1: DATA}, {0: DATA + 100}),
    "a store before": (
        negated(after(X, call(X, after(Y, stored(Y, negated(INPUT)))))),
        {1: DATA, 5: DATA},
        DATA - 100,
    ),
    "a store of a part before": (
        after(X, call(X, after(Y, HALF))),
        {1: 7 * DATA, 5: DATA},
        np.concatenate([[7], -DATA[1:-1], [42]]).astype(np.int32) + 100,
    ),
    "a store after": (
        UOp(Op.SINK, stored(Z, negated(LEFT))),
        {1: DATA},
        {0: DATA + 100, 2: -DATA - 100},
    ),
    "a value is passed": (after(X, call(X, negated(INPUT))), {5: DATA}, 100 - DATA),
    "an input is passed": (after(X, call(X, INPUT)), {5: DATA}, DATA + 100),
    "a view is passed": (
        after(X, call(X, UOp(Op.FLIP, Y, arg=FlipArg((True,))))),
        {1: DATA},
        DATA[::-1] + 100,
    ),
    "another shape is passed": (
        after(X, call(X, UOp(Op.RESHAPE, Y, dims((2, N // 2))))),
        {1: DATA},
        DATA + 100,
    ),
    "old contents are used after": (
        UOp(Op.ADD, SQUARE, IN_PLACE),
        {1: DATA},
        DATA * DATA + DATA + 100,
    ),
    "kernels in turn": (
        UOp(Op.SUB, after(X, THIRD), after(Y, THIRD)),
        {1: DATA},
        np.zeros(N, np.int32),
    ),
    "one buffer twice": (after(X, call(X, X)), {0: DATA}, DATA + 100),
    "a fold of what a kernel leaves": (
        UOp(Op.REDUCE, LEFT, arg=ReduceArg(Op.ADD, (0,))),
        {1: DATA},
        np.array([DATA.sum() + 100 * N], np.int32),
    ),
}


def given(inputs: Mapping[int, Array], root: UOp) -> dict[int, Array]:
    return {slot: data for slot, data in inputs.items() if slot in slots_of(root)}


def check(result: Output, expected: Output) -> None:
    if isinstance(expected, dict):
        assert isinstance(result, dict)
        assert result.keys() == expected.keys()
        pairs = [(result[slot], expected[slot]) for slot in expected]
    else:
        assert isinstance(result, np.ndarray)
        assert isinstance(expected, np.ndarray)
        pairs = [(result, expected)]
    for a, b in pairs:
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_kernel_runs_at_its_place_in_a_graph(name: str) -> None:
    root, inputs, expected = PROGRAMS[name]
    check(evaluate(root, inputs), expected)
    check(evaluate_adversarially(root, inputs), expected)
    sets = accept(root, inputs)
    ordered = [expected[k] for k in sorted(expected)] if isinstance(expected, dict) else [expected]
    for one, value in zip(sets, ordered, strict=True):
        assert one.sets is None
        assert one.contains(np.asarray(value)).all()


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_stage_keeps_a_call_among_values(name: str) -> None:
    root, inputs, expected = PROGRAMS[name]
    compiled = compile(root)
    check(compiled.run(inputs), expected)
    slots = compiled.executable.results
    for program in compiled.stages.values():
        left = evaluate(program, given(inputs, program))
        assert isinstance(left, dict)
        if isinstance(expected, dict):
            check({slot: left[slot] for slot in slots}, expected)
        else:
            check(left[slots[0]], expected)


def test_optimizations_count_the_kernels_of_the_graph_and_no_functions_by_name() -> None:
    copy = UOp(Op.CALL, UOp(Op.CUSTOMFUNCTION, arg=CustomFunctionArg("copy")), X, Y)
    root = negated(after(X, copy))
    compiled = compile(root, optimizations=[[Split(0, 2, AxisType.UPCAST)]])
    assert "gidx0 < 3" in compiled.source
    check(compiled.run({1: DATA}), -DATA)


def test_an_access_that_nothing_orders_is_a_race() -> None:
    for root in (UOp(Op.ADD, X, LEFT), UOp(Op.SINK, call(X, Y), stored(X, INPUT))):
        inputs = given({0: DATA, 1: DATA, 5: DATA}, root)
        with pytest.raises(UndefinedError, match=r"STORE\.u2"):
            evaluate(root, inputs)


def test_kernels_that_write_parts_of_a_buffer_need_no_order() -> None:
    half = N // 2
    r = loop(0, half)
    kernels = [
        UOp(Op.SINK, UOp(Op.END, store(kernel_param(0, N), add(r, k * half), const(k, I32)), r))
        for k in range(2)
    ]
    root = negated(after(X, *(UOp(Op.CALL, kernel, X) for kernel in kernels)))
    expected = np.repeat(np.array([0, -1], np.int32), half)
    check(evaluate(root, {}), expected)
    check(compile(root).run(), expected)


def test_a_copy_is_only_read() -> None:
    for passed in (INPUT, UOp(Op.FLIP, Y, arg=FlipArg((True,)))):
        root = UOp(Op.SINK, UOp(Op.CALL, plus(0), passed), stored(X, INPUT))
        inputs = given({1: DATA, 5: DATA}, root)
        with pytest.raises(LackingError, match=r"CALL\.n2"):
            evaluate(root, inputs)
        with pytest.raises(UnsupportedError, match="stores to the copy of"):
            compile(root)


def test_absent_elements_of_what_is_passed_are_unspecified() -> None:
    root = after(X, call(X, padded(shrunk(INPUT))))
    (accepted,) = accept(root, {5: DATA})
    assert accepted.any.tolist() == [True, False, False, False, False, True]
    result = compile(root).run({5: DATA})
    assert isinstance(result, np.ndarray)
    assert accepted.contains(result).all()


def polynomial(tag: str | None, *arguments: UOp) -> UOp:
    a, b = (param(k, (N,), I32) for k in range(2))
    body = UOp(Op.TUPLE, UOp(Op.ADD, UOp(Op.MUL, a, a), b))
    called = UOp(Op.FUNCTION, body, *arguments, tag=tag)
    return UOp(Op.GETTUPLE, called, arg=GetTupleArg(0))


def kernels_and_launches(compiled: Compiled) -> tuple[int, int]:
    return len(compiled.executable.names), len(compiled.executable.steps)


def test_a_precompiled_function_is_one_kernel_that_is_called_often() -> None:
    """The kernel of the body twice, and the kernel of the sum."""
    a, b = INPUT, param(6, (N,), I32)
    inputs = {5: DATA, 6: DATA[::-1].copy()}
    expected = (DATA**2 + DATA[::-1]) + (DATA[::-1] ** 2 + DATA)
    roots = {
        tag: UOp(Op.ADD, polynomial(tag, a, b), polynomial(tag, b, a))
        for tag in (None, PRECOMPILED)
    }
    results = {tag: compile(root) for tag, root in roots.items()}
    assert kernels_and_launches(results[None]) == (1, 1)
    assert kernels_and_launches(results[PRECOMPILED]) == (2, 3)
    for tag, root in roots.items():
        check(evaluate(root, inputs), expected)
        check(results[tag].run(inputs), expected)


def test_what_a_precompiled_function_takes_may_be_computed() -> None:
    inner = polynomial(PRECOMPILED, negated(INPUT), INPUT)
    root = polynomial(PRECOMPILED, inner, negated(inner))
    compiled = compile(root)
    assert kernels_and_launches(compiled)[1] == 5
    once = DATA * DATA + DATA
    check(compiled.run({5: DATA}), once * once - once)


def test_a_precompiled_function_may_call_another_one() -> None:
    inner = polynomial(PRECOMPILED, *(param(k, (N,), I32) for k in range(2)))
    body = UOp(Op.TUPLE, UOp(Op.FLIP, inner, arg=FlipArg((True,))))
    called = UOp(Op.FUNCTION, body, INPUT, negated(INPUT), tag=PRECOMPILED)
    root = negated(UOp(Op.GETTUPLE, called, arg=GetTupleArg(0)))
    for result in (evaluate(root, {5: DATA}), compile(root).run({5: DATA})):
        check(result, -(DATA * DATA - DATA)[::-1])


def test_a_function_of_absent_elements_is_inlined() -> None:
    absent = padded(shrunk(INPUT))
    root = UOp(Op.LOAD, polynomial(PRECOMPILED, absent, INPUT))
    result = compile(root).run({5: DATA})
    assert isinstance(result, np.ndarray)
    (accepted,) = accept(root, {5: DATA})
    assert accepted.contains(result).all()


def test_the_decorator_precompiles() -> None:
    @function(precompiled=True)
    def square(t: Tensor) -> Tensor:
        return t * t

    x = Tensor(INPUT)
    root = (square(x) + square(-x)).uop
    compiled = compile(root)
    assert kernels_and_launches(compiled) == (3, 4)
    check(compiled.run({5: DATA}), 2 * DATA * DATA)
