"""Of programs that write over what was read: one store after another gives what they give."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

import numpy as np
import numpy.typing as npt
import pytest

from uop.conformance.suite.case import Case
from uop.conformance.suite.generate import groups
from uop.interpreter.evaluate import evaluate
from uop.spec.args import ReduceArg
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

Array = npt.NDArray[np.generic]
NAMES = ("in-place", "relayed", "overwritten", "temporaries", "whole-again", "crossing")
OUTSIDE = -1
OPS = {Op.ADD: np.add, Op.MUL: np.multiply, Op.MAX: np.maximum}


def made(name: str) -> Iterator[Case]:
    for group in groups("graph"):
        if group.name == name:
            for index in range(group.count("default")):
                case = group.case(index, 0)
                assert isinstance(case, Case)
                yield case


def numbers(u: UOp) -> list[int]:
    """A shape, or an offset, that is written in a program."""
    return [s.arg.value for s in (u.src if u.op is Op.STACK else (u,))]  # type: ignore[union-attr]


def places(u: UOp) -> tuple[UOp, npt.NDArray[np.int64]]:
    """The buffer under a view, and the number of each element in it."""
    if u.op in (Op.BUFFER, Op.PARAM, Op.CONTIGUOUS, Op.REDUCE) or u.op in OPS:
        return u, np.arange(int(np.prod(u.shape))).reshape(u.shape)
    base, at = places(u.src[0])
    match u.op:
        case Op.PERMUTE:
            at = at.transpose(u.arg.order)  # type: ignore[union-attr]
        case Op.FLIP:
            at = np.flip(at, [k for k, f in enumerate(u.arg.flags) if f])  # type: ignore[union-attr]
        case Op.RESHAPE:
            at = at.reshape(u.shape)
        case Op.EXPAND:
            at = np.broadcast_to(at, u.shape)
        case Op.SHRINK:
            start = numbers(u.src[1])
            at = at[tuple(slice(o, o + n) for o, n in zip(start, u.shape, strict=True))]
        case Op.PAD:
            start = numbers(u.src[1])
            whole = np.full(u.shape, OUTSIDE)
            whole[tuple(slice(o, o + n) for o, n in zip(start, at.shape, strict=True))] = at
            at = whole
        case Op.INDEX:
            at = at[numbers(u.src[1])[0]]
        case _:
            assert u.op is Op.AFTER
    return base, at


def value(u: UOp, memory: dict[UOp, Array]) -> Array:
    """The value of a node, of the memory as it is now."""
    base, at = places(u)
    if base.op in OPS:
        whole = OPS[base.op](*(value(s, memory) for s in base.src))
    elif base.op is Op.CONTIGUOUS:
        whole = value(base.src[0], memory)
    elif isinstance(base.arg, ReduceArg):
        (axis,) = base.arg.axes
        rows = np.moveaxis(value(base.src[0], memory), axis, 0)
        whole = np.expand_dims(reduce(OPS[base.arg.op], rows), axis)
    else:
        whole = memory[base]
    flat = np.append(whole.reshape(-1), whole.dtype.type(0))
    return flat[at]


def run(case: Case) -> tuple[Array, ...] | dict[int, Array]:
    """Do one STORE after the other, each of which reads all before it writes."""
    (batch,) = case.batches
    nodes = case.root.toposort()
    leaves = [u for u in nodes if u.op in (Op.BUFFER, Op.PARAM)]
    memory = {u: batch.inputs[u.arg.slot].copy() for u in leaves}  # type: ignore[union-attr]
    for u in nodes:
        if u.op is Op.STORE:
            result = value(u.src[1], memory)
            base, at = places(u.src[0])
            memory[base].reshape(-1)[at] = result
    if case.root.op is Op.TUPLE:
        return tuple(value(u, memory) for u in case.root.src)
    return {u.arg.slot: memory[u] for u in leaves}  # type: ignore[union-attr]


@pytest.mark.parametrize("name", NAMES)
def test_the_interpreter_reads_all_before_it_writes(name: str) -> None:
    cases = list(made(name))
    assert len(cases) >= 9
    for case in cases:
        found, expected = evaluate(case.root, case.batches[0].inputs), run(case)
        if isinstance(expected, tuple):
            assert isinstance(found, tuple)
            pairs = list(zip(found, expected, strict=True))
        else:
            assert isinstance(found, dict)
            pairs = [(found[slot], expected[slot]) for slot in found]
        assert pairs
        for a, b in pairs:
            assert a.dtype == b.dtype
            assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), case.id


def test_what_is_written_over_was_read_through_every_view() -> None:
    stores = [u for c in made("in-place") for u in c.root.toposort() if u.op is Op.STORE]
    below = [{v.op for v in u.src[1].toposort()} for u in stores]
    views = (Op.PERMUTE, Op.FLIP, Op.PAD, Op.SHRINK, Op.EXPAND, Op.INDEX, Op.RESHAPE)
    for op in (*views, Op.REDUCE):
        assert any(op in ops for ops in below), op


def test_some_order_is_kept_by_a_group_by_several_operands_and_by_nested_nodes() -> None:
    nodes = {u for n in NAMES[1:3] for c in made(n) for u in c.root.toposort() if u.op is Op.AFTER}
    assert any(u.src[1].op is Op.GROUP for u in nodes)
    assert any(len(u.src) > 2 for u in nodes)
    assert any(u.src[0].op is Op.AFTER for u in nodes)


def test_a_ring_is_longer_than_three_buffers() -> None:
    for case in made("relayed"):
        assert sum(u.op is Op.BUFFER for u in case.root.toposort()) >= 4


def test_an_input_is_an_output_beside_temporaries() -> None:
    for case in made("temporaries"):
        kinds = [u.op for u in case.root.src]
        assert kinds.count(Op.PARAM) == 2
        assert Op.CONTIGUOUS in kinds
