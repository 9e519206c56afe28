"""Derived properties as laws: for every op, what is derived of a node is what evaluation shows.

Elementwise ops run over all values of the 8-bit dtypes and over parts of them; every other op in
the programs written by hand. What an implementation may return besides the reference counts too.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product

import numpy as np
import pytest

from uop.conformance.judging import storage
from uop.conformance.suite.levels.written import by_file
from uop.conformance.suite.values import specials
from uop.interpreter.adversary.evaluation import evaluate_adversarially
from uop.interpreter.evaluate import check_of, check_value, evaluate_full
from uop.interpreter.numeric.storage import Array, from_bits, to_bits
from uop.interpreter.rules.table import UNSPECIFIED
from uop.interpreter.tensor.devices import Sharded, evaluate_by_devices
from uop.interpreter.values import Value
from uop.spec.args import Arg, BinaryArg, ConstArg, DTypeArg, SourceArg
from uop.spec.case import FileCase
from uop.spec.dtype import DTYPES, DType, Kind, dtypes
from uop.spec.errors import InvalidError, UndefinedError
from uop.spec.graph import kind_of, outside_bodies, slot_of, slots_of, toposort
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, identity_of
from uop.spec.uop import UOp, dims, param

BYTES = (dtypes.bool, dtypes.int8, dtypes.uint8, dtypes.fp8e4m3, dtypes.fp8e5m2)
ELEMENTWISE = [
    *(op for op, d in DECLARATIONS.items() if d.is_elementwise),
    *(Op.CDIV, Op.CMOD, Op.MIN),
]
NOT_OF_BYTES = (Op.THREEFRY,)
SPANS = ((0, 256), (60, 71), (122, 136), (255, 256))
"""Parts of the values in their order: all, some, those around the middle, the last."""
WIDEST_TERNARY = 16
MOST_MOVED = 1 << 12
"""Elements that the adversary moves: it looks at each of them."""


def ordered(dtype: DType) -> list[int]:
    """The bit patterns of an 8-bit dtype in the order of their values, without NaN."""
    every = range(2 if dtype is dtypes.bool else 256)
    numbers = [b for b in every if not (dtype.is_float and dtype.format.is_nan(b))]
    return sorted(numbers, key=lambda b: (dtype.decode(b), dtype.is_float and b < 128))


@cache
def vector(dtype: DType, span: tuple[int, int]) -> UOp:
    """Constants whose interval is that of a part of the values of a dtype."""
    every = ordered(dtype)
    start, stop = (k * len(every) // 256 for k in span)
    part = every[start : max(stop, start + 1)]
    return UOp(Op.STACK, *(UOp(Op.CONST, arg=ConstArg(b, dtype)) for b in part))


def along(u: UOp, axis: int, rank: int) -> UOp:
    """A vector as one axis of several."""
    return UOp(Op.RESHAPE, u, dims(tuple(u.shape[0] if k == axis else 1 for k in range(rank))))


def operand_dtypes(op: Op) -> Iterator[tuple[tuple[DType, ...], Arg | None]]:
    """All dtypes of 8 bits that an op takes, and its arg."""
    count = len(DECLARATIONS[op].src)
    args: list[Arg | None] = [None]
    if op in (Op.CAST, Op.BITCAST):
        args = [DTypeArg(d) for d in DTYPES.values() if d.kind is not Kind.VOID]
    for dtype, arg in product(BYTES, args):
        given = (dtypes.bool, dtype, dtype) if op is Op.WHERE else (dtype,) * count
        try:
            UOp(op, *(param(k, (), d) for k, d in enumerate(given)), arg=arg)
        except InvalidError:
            continue
        yield given, arg


CASES = [
    pytest.param(op, given, arg, id=f"{op.name}-{given[-1].name}-{getattr(arg, 'dtype', '')}")
    for op in ELEMENTWISE
    if op not in NOT_OF_BYTES
    for given, arg in operand_dtypes(op)
]


def obeys(u: UOp, inputs: dict[int, Array]) -> None:
    """The reference, and what an adversary makes of the same, lie in what is derived."""
    full = evaluate_full(u, inputs, check_value)
    assert isinstance(full, Value)
    if full.data.size <= MOST_MOVED:
        moved = np.asarray(evaluate_adversarially(u, inputs, seed=1))
        check_value(u, Value(moved, full.invalid, full.unspecified))


@pytest.mark.parametrize(("op", "given", "arg"), CASES)
def test_every_value_of_an_elementwise_op_lies_in_its_interval(
    op: Op, given: tuple[DType, ...], arg: Arg | None
) -> None:
    whole = SPANS[0]
    several = {(s, t) for s in SPANS for t in (s, whole)} | {(whole, s) for s in SPANS}
    for spans in several if len(given) > 1 else {(s, s) for s in SPANS}:
        vectors = [vector(d, spans[min(k, len(spans) - 1)]) for k, d in enumerate(given)]
        if len(given) == 3 and op is not Op.WHERE:
            vectors = [v if v.shape[0] <= WIDEST_TERNARY else few(v) for v in vectors]
        obeys(UOp(op, *(along(v, k, len(given)) for k, v in enumerate(vectors)), arg=arg), {})


def few(v: UOp) -> UOp:
    """The ends of a vector and some values between, with the same interval."""
    step = -(-len(v.src) // (WIDEST_TERNARY - 1))
    return UOp(Op.STACK, *v.src[::step], v.src[-1])


@pytest.mark.parametrize(("op", "given", "arg"), CASES)
def test_no_pattern_is_left_out(op: Op, given: tuple[DType, ...], arg: Arg | None) -> None:
    """Inputs of any bits, NaNs with them; what is known of a PARAM is its dtype."""
    inputs, operands = {}, []
    for k, dtype in enumerate(given):
        count = 2 if dtype is dtypes.bool else 256 if len(given) < 3 or op is Op.WHERE else 32
        bits = np.linspace(0, 1 if dtype is dtypes.bool else 255, count).astype(np.uint8)
        inputs[k] = np.asarray(from_bits(bits, dtype))
        operands.append(along(param(k, (count,), dtype), k, len(given)))
    obeys(UOp(op, *operands, arg=arg), inputs)


def test_every_elementwise_op_has_8_bit_operands_but_those_that_are_named() -> None:
    assert {p.values[0] for p in CASES} == set(ELEMENTWISE) - set(NOT_OF_BYTES)


WRITTEN = [
    pytest.param(case, id=f"{level}-{name}-{case.id}")
    for level in ("op", "function", "device", "kernel")
    for name, cases in by_file(level).items()
    for case in cases
    if not case.undefined
]


def given_of(case: FileCase) -> dict[int, Array]:
    return {k: storage.from_literal(a) for k, a in case.inputs.items()}


def observed(case: FileCase) -> set[Op]:
    """Run a case with every value checked: the ops that showed one, and those that have none."""
    assert case.root is not None
    seen = {u.op for u in case.root.toposort() if u.dtype is dtypes.void}
    check = check_of(case.root)

    def observe(u: UOp, value: Value) -> None:
        seen.add(u.op)
        check(u, value)

    evaluate_full(case.root, given_of(case), observe)
    return seen | alone(case.root, given_of(case))


NO_VALUE_ALONE = {
    "CALL.u1": "a node inside a loop or an expansion",
    "INDEX.u1": "a location out of bounds, which only a false gate keeps from access",
}


def alone(root: UOp, given: dict[int, Array]) -> set[Op]:
    """The nodes that evaluation takes apart or reads, each as a program of its own."""
    if kind_of(root).calls_kernels:
        return {u.op for u in root.toposort() if u.op in (Op.BUFFER, Op.PARAM)}
    seen = set()
    for u, inputs in values_of(root, given):
        try:
            found = evaluate_full(u, inputs)
        except UndefinedError as error:
            if error.label not in NO_VALUE_ALONE:
                raise
            continue
        assert isinstance(found, Value)
        check_value(u, found)
        seen.add(u.op)
        if u.op is Op.CONTRACT:
            seen.add(Op.UNROLL)  # The interval of CONTRACT is that of the UNROLLs below it.
    return seen


def values_of(root: UOp, inputs: dict[int, Array]) -> Iterator[tuple[UOp, dict[int, Array]]]:
    """The nodes of a program that have a value, and the inputs below each of them."""
    for u in root.toposort():
        bound = {slot_of(v.src[0]) for v in u.toposort() if v.op is Op.BIND}
        used = slots_of(u).keys() - bound
        if u.dtype is not dtypes.void and used <= inputs.keys() and not _inside(root, u):
            yield u, {k: inputs[k] for k in used}


def _inside(root: UOp, u: UOp) -> bool:
    """Whether a node stands only in bodies, whose PARAMs are no inputs."""
    return u not in toposort([root], outside_bodies)


@pytest.mark.parametrize("case", WRITTEN)
def test_what_is_derived_is_what_evaluation_shows(case: FileCase) -> None:
    assert observed(case)


def test_every_op_is_among_them() -> None:
    shown: set[Op] = set()
    for p in WRITTEN:
        case = p.values[0]
        assert isinstance(case, FileCase)
        shown |= observed(case)
    # What renders a kernel makes these two: they stand in no program that is written by hand.
    effects = {Op.PROGRAM, Op.SOURCE}
    assert set(DECLARATIONS) - shown == effects
    source = UOp(Op.SOURCE, arg=SourceArg("k"))
    binary = UOp(Op.BINARY, arg=BinaryArg(b""))
    for u in (source, UOp(Op.PROGRAM, UOp(Op.LINEAR), source, binary)):
        assert (u.dtype, u.shape, u.min_max, u.addrspace) == (dtypes.void, (), None, None)


def constants(u: UOp, data: Array) -> UOp:
    """The data of a PARAM as constants: its interval is theirs, and no wider."""
    bits = np.asarray(to_bits(data)).reshape(-1).tolist()
    flat = UOp(Op.STACK, *(UOp(Op.CONST, arg=ConstArg(int(b), u.dtype)) for b in bits))
    return UOp(Op.RESHAPE, flat, dims(u.shape))


ALONE = [p for p in WRITTEN if str(p.id).startswith("op")]


@pytest.mark.parametrize("case", ALONE)
def test_intervals_hold_when_those_of_the_inputs_are_their_hulls(case: FileCase) -> None:
    """Every op of tensor graphs on operands of which more is known than their dtype."""
    assert case.root is not None
    inputs, known = given_of(case), {}
    for slot, u in slots_of(case.root).items():
        is_value = u.op is Op.PARAM and u.addrspace is None and u.device is None
        if is_value and slot in inputs and inputs[slot].size and u.dtype is not dtypes.index:
            known[u] = constants(u, inputs.pop(slot))
    narrow = case.root.substitute(known)
    evaluate_full(narrow, inputs, check_value)
    alone(narrow, inputs)


TENSORS = [p for p in WRITTEN if not str(p.id).startswith("kernel")]
ON_DEVICES = [p for p in TENSORS if str(p.id).startswith("device")]


@pytest.mark.parametrize("case", ON_DEVICES)
def test_devices_and_axes_are_where_the_parts_lie(case: FileCase) -> None:
    assert case.root is not None
    for u, inputs in values_of(case.root, given_of(case)):
        placed = evaluate_by_devices(u, inputs)
        assert isinstance(placed, Sharded)
        assert (placed.device, placed.axis) == (u.device, u.axis), u
        count = len(u.device) if isinstance(u.device, tuple) else 1
        assert len(placed.parts) == count
        whole = evaluate_full(u, inputs)
        assert isinstance(whole, Value)
        assert placed.whole().data.tobytes() == whole.data.tobytes()


def is_out_of_bounds(u: UOp, inputs: dict[int, Array]) -> bool:
    """Whether a location may be named, and accessed only where a gate is true."""
    try:
        evaluate_full(UOp(Op.LOAD, u), inputs)
    except UndefinedError as error:
        return error.label == "INDEX.u1"
    return False


@pytest.mark.parametrize("case", TENSORS)
def test_what_has_an_addrspace_can_be_written_and_nothing_else(case: FileCase) -> None:
    """A write through a location is seen when it is read; a value is no place to write to."""
    assert case.root is not None
    for u, inputs in values_of(case.root, given_of(case)):
        zeros = UOp(Op.CONST, arg=ConstArg(0, u.dtype))
        if 0 not in u.shape:
            ones = UOp(Op.RESHAPE, zeros, dims((1,) * len(u.shape)))
            zeros = UOp(Op.EXPAND, ones, dims(u.shape)) if u.shape else zeros
        if u.addrspace is None:
            with pytest.raises(InvalidError, match=r"STORE\.c"):
                UOp(Op.STORE, u, zeros)
        elif zeros.shape == u.shape and u.op is not Op.AFTER:
            if is_out_of_bounds(u, inputs):
                continue
            read = evaluate_full(UOp(Op.LOAD, UOp(Op.AFTER, u, UOp(Op.STORE, u, zeros))), inputs)
            assert isinstance(read, Value)
            assert read.data.tobytes() == bytes(read.data.nbytes)


def test_partial_ops_are_those_that_lack_values_for_some_operands() -> None:
    lacking = {op for op in UNSPECIFIED if DECLARATIONS[op].takes_values}
    assert lacking == {op for op, declared in DECLARATIONS.items() if declared.is_partial}


FOLDED = [op for op, declared in DECLARATIONS.items() if declared.identity]


@pytest.mark.parametrize("op", FOLDED, ids=lambda op: op.name)
def test_the_identity_of_a_fold_changes_no_value(op: Op) -> None:
    for dtype in DECLARATIONS[op].dtypes:
        data = specials(dtype)
        start = UOp(Op.CONST, arg=ConstArg.of(identity_of(op, dtype), dtype))
        found = evaluate_full(UOp(op, start, param(0, data.shape, dtype)), {0: data})
        assert isinstance(found, Value)
        with np.errstate(invalid="ignore"):  # Comparing NaNs of small floats warns.
            is_same = (found.data == data) | (data != data)
        assert np.all(is_same), dtype
