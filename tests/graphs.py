"""Small typed graphs with inputs, for tests that run what a compiler makes of them."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from hypothesis import HealthCheck, reject, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from uop.compiler.stages.order import TEMPORARY
from uop.conformance.judging.compare import compare
from uop.interpreter.accept import accept
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import np_dtype
from uop.spec.args import (
    BinaryArg,
    BufferArg,
    ConstArg,
    DTypeArg,
    FlipArg,
    PadArg,
    PadFill,
    ParamArg,
    PermuteArg,
    ReduceArg,
)
from uop.spec.dtype import DTYPES, DType, Kind, dtypes
from uop.spec.errors import InvalidError, UndefinedError, UnsupportedError
from uop.spec.graph import base_of, calls, slots_of, written_by
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.uop import UOp, const, dims, index_const, param

Array = NDArray[Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]
Step = Callable[[Draw, list[UOp]], UOp]
Inputs = dict[int, Array]

STORED = [d for d in DTYPES.values() if d.kind not in (Kind.VOID, Kind.INDEX)]
SHAPES = [(2, 3), (3,), (1, 3), (2, 1), (), (3, 2), (2, 2, 2), (4,), (0, 3)]
ELEMENTWISE = [d for d in DECLARATIONS.values() if d.is_elementwise and d.op is not Op.CAST]
MARKERS = [Op.CONTIGUOUS, Op.CONTIGUOUSBACKWARD, Op.DETACH, Op.LOAD]

SLOW = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
"""The settings of a test that runs each program."""


def contents(dtype: DType, shape: tuple[int, ...], seed: int) -> Array:
    """Elements of which about half are special: extremes, zeros, and for floats inf and NaN."""
    rng = np.random.default_rng(seed)
    count = prod(shape)
    bits = rng.integers(0, 1 << dtype.bits, count, dtype=np.uint64, endpoint=False)
    special = [dtype.encode(v) for v in (0, 1, dtype.min, dtype.max)]
    if dtype.is_float:
        special += [dtype.encode(v) for v in (1.5, -2.0, float("nan"), 0.25)]
        special += [1, dtype.format.sign_bit, dtype.format.max_bits]
    elif dtype.kind is not Kind.BOOL:
        special += [2, 3, 5, 7]
    chosen = np.array(special, np.uint64)[rng.integers(0, len(special), count)]
    picked = np.where(rng.random(count) < 0.5, chosen, bits)
    storage = np_dtype(dtype)
    return picked.astype(f"u{storage.itemsize}").view(storage).reshape(shape)


def _input(draw: Draw, pool: list[UOp]) -> UOp:
    slots = [u.arg.slot for u in pool if isinstance(u.arg, ParamArg)]
    return param(
        max(slots, default=-1) + 1, draw(st.sampled_from(SHAPES)), draw(st.sampled_from(STORED))
    )


def _one_of(draw: Draw, pool: list[UOp]) -> UOp:
    """Often the last one, so that graphs grow deep."""
    return pool[-1] if draw(st.booleans()) else draw(st.sampled_from(pool))


def _const(draw: Draw, pool: list[UOp]) -> UOp:
    dtype = draw(st.sampled_from(pool)).dtype
    bits = int(contents(dtype, (), draw(st.integers(0, 99))).reshape(1).view(np.uint8)[0])
    return UOp(Op.CONST, arg=ConstArg(bits & ((1 << dtype.bits) - 1), dtype))


def _binary(draw: Draw, pool: list[UOp]) -> UOp:
    return UOp(Op.BINARY, arg=BinaryArg(draw(st.binary(min_size=1, max_size=4))))


def _elementwise(draw: Draw, pool: list[UOp]) -> UOp:
    first = _one_of(draw, pool)
    fitting = [d for d in ELEMENTWISE if first.dtype in d.dtypes]
    declaration = draw(st.sampled_from(fitting))
    same = [u for u in pool if u.dtype is first.dtype]
    if declaration.op is Op.WHERE:
        conditions = [u for u in pool if u.dtype is dtypes.bool] or [const(True, dtypes.bool)]
        return UOp(Op.WHERE, draw(st.sampled_from(conditions)), first, draw(st.sampled_from(same)))
    return UOp(declaration.op, *(draw(st.sampled_from(same)) for _ in declaration.src))


def _cast(draw: Draw, pool: list[UOp]) -> UOp:
    op = draw(st.sampled_from([Op.CAST, Op.BITCAST]))
    return UOp(op, draw(st.sampled_from(pool)), arg=DTypeArg(draw(st.sampled_from(STORED))))


def _movement(draw: Draw, pool: list[UOp]) -> UOp:
    t = _one_of(draw, pool)
    op = draw(st.sampled_from([Op.PERMUTE, Op.FLIP, Op.RESHAPE, Op.EXPAND, Op.SHRINK]))
    if op is Op.PERMUTE:
        return UOp(op, t, arg=PermuteArg(tuple(draw(st.permutations(range(len(t.shape)))))))
    if op is Op.FLIP:
        return UOp(op, t, arg=FlipArg(tuple(draw(st.booleans()) for _ in t.shape)))
    if op is Op.RESHAPE:
        other = [s for s in (*SHAPES, (prod(t.shape),)) if prod(s) == prod(t.shape)]
        return UOp(op, t, dims(draw(st.sampled_from([*other, (1, *t.shape)]))))
    if op is Op.EXPAND:
        return UOp(op, t, dims(draw(st.integers(1, 4)) if d == 1 else d for d in t.shape))
    offset = [draw(st.integers(0, d)) for d in t.shape]
    kept = (draw(st.integers(0, d - o)) for d, o in zip(t.shape, offset, strict=True))
    return UOp(op, t, dims(offset), dims(kept))


def _pad(draw: Draw, pool: list[UOp]) -> UOp:
    t = _one_of(draw, pool)
    before = [draw(st.integers(0, 1)) for _ in t.shape]
    wide = [d + b + draw(st.integers(0, 1)) for d, b in zip(t.shape, before, strict=True)]
    fill = PadArg(draw(st.sampled_from(PadFill)))
    return UOp(Op.PAD, t, dims(before), dims(wide), arg=fill)


def _reduce(draw: Draw, pool: list[UOp]) -> UOp:
    t = _one_of(draw, pool)
    axes = tuple(axis for axis, _ in enumerate(t.shape) if draw(st.booleans()))
    return UOp(Op.REDUCE, t, arg=ReduceArg(draw(st.sampled_from([Op.ADD, Op.MUL, Op.MAX])), axes))


def _index(draw: Draw, pool: list[UOp]) -> UOp:
    """Indices are constants, or data reduced to what fits."""
    t = _one_of(draw, pool)
    data = [u for u in pool if u.dtype.is_int and len(u.shape) <= 1] or [index_const(0)]
    indices = []
    for d in t.shape[: draw(st.integers(0, len(t.shape)))]:
        if d and draw(st.booleans()) and d < 128:
            i = draw(st.sampled_from(data))
            indices.append(UOp(Op.MOD, i, const(d, i.dtype)))
        else:
            at = st.integers(0, max(d - 1, 0)).map(index_const)
            indices.append(
                draw(st.one_of(at, st.lists(at, max_size=3).map(lambda s: UOp(Op.STACK, *s))))
            )
    return UOp(Op.INDEX, t, *indices)


def _stack(draw: Draw, pool: list[UOp]) -> UOp:
    t = _one_of(draw, pool)
    same = [u for u in pool if (u.dtype, u.shape) == (t.dtype, t.shape)]
    return UOp(Op.STACK, *draw(st.lists(st.sampled_from(same), min_size=1, max_size=3)))


def _marker(draw: Draw, pool: list[UOp]) -> UOp:
    return UOp(draw(st.sampled_from(MARKERS)), draw(st.sampled_from(pool)))


def _gated(draw: Draw, pool: list[UOp]) -> UOp:
    t = _one_of(draw, pool)
    same = [u for u in pool if (u.dtype, u.shape) == (t.dtype, t.shape)]
    gates = [u for u in pool if u.dtype is dtypes.bool and u.shape == t.shape]
    return UOp(Op.LOAD, t, draw(st.sampled_from(same)), draw(st.sampled_from(gates or [t])))


STEPS: tuple[Step, ...] = (
    _input, _const, _binary, *(_elementwise,) * 5, _cast, _cast, _movement, _movement, _movement,
    _pad, _pad, _reduce, _index, _stack, _marker, _gated,
)  # fmt: skip


def _grown(draw: Draw, most: int, before: list[UOp]) -> list[UOp]:
    pool = [*before, _input(draw, before)]
    for _ in range(draw(st.sampled_from([1, most // 2, most]))):
        step = draw(st.sampled_from(STEPS))
        try:
            u = step(draw, pool)
        except (InvalidError, ValueError):
            continue
        if prod(u.shape) <= 64:
            pool.append(u)
    return pool


def _inputs_of(root: UOp, seed: int) -> Inputs:
    found = [u for u in root.toposort() if u.op in (Op.PARAM, Op.BUFFER)]
    return {u.arg.slot: contents(u.dtype, u.shape, seed + u.arg.slot) for u in found}  # type: ignore[union-attr]


@st.composite
def graphs(draw: Draw, most: int = 16) -> tuple[UOp, Inputs]:
    """A value or a TUPLE, and inputs for it. A step that would be invalid is left out."""
    pool = _grown(draw, most, [])
    root = pool[-1]
    if draw(st.booleans()):
        root = UOp(Op.TUPLE, *pool[-4:])
    return root, _inputs_of(root, draw(st.integers(0, 1 << 16)))


@st.composite
def stores(draw: Draw, most: int = 6) -> tuple[UOp, Inputs]:
    """A SINK of STOREs into views of one or two BUFFERs, ordered by AFTER, and inputs for it."""
    count = draw(st.integers(1, 2))
    shape = draw(st.sampled_from([(2, 3), (4,), (2, 2, 2), (3, 1)]))
    dtype = draw(st.sampled_from(STORED))
    locations = [UOp(Op.BUFFER, dims(shape), arg=BufferArg(20 + k, dtype)) for k in range(count)]
    effects: list[UOp] = []
    values: list[UOp] = []
    for _ in range(draw(st.integers(1, most))):
        k = draw(st.integers(0, count - 1))
        target = _view(draw, locations[k])
        values = _grown(draw, 4, values)
        pool = [*values, *locations, *(_view(draw, location) for location in locations)]
        fitting = [u for u in pool if (u.dtype, u.shape) == (target.dtype, target.shape)]
        value = draw(st.sampled_from([*fitting, _filled(target)]))
        gates = [u for u in pool if u.dtype is dtypes.bool and u.shape == target.shape]
        gate = [draw(st.sampled_from(gates))] if gates and draw(st.booleans()) else []
        effect = UOp(Op.STORE, target, value, *gate)
        effects.append(effect)
        # Whatever comes later comes after: no races.
        locations = [UOp(Op.AFTER, location, effect) for location in locations]
    root = UOp(Op.SINK, *effects)
    return root, _inputs_of(root, draw(st.integers(0, 1 << 16)))


def _filled(target: UOp) -> UOp:
    one = UOp(Op.RESHAPE, const(1, target.dtype), dims((1,) * len(target.shape)))
    return UOp(Op.EXPAND, one, dims(target.shape))


def _view(draw: Draw, location: UOp) -> UOp:
    """The location, or part of it seen otherwise."""
    view = location
    for _ in range(draw(st.integers(0, 2))):
        moved = _movement(draw, [view])
        if moved.op is not Op.EXPAND:
            view = moved
    return view


def demanded(root: UOp, inputs: Inputs) -> tuple[Accepted, ...]:
    """What a program may return; one without a meaning is drawn anew."""
    try:
        return accept(root, inputs)
    except (UndefinedError, UnsupportedError):
        reject()


def agree(root: UOp, inputs: Inputs, program: UOp) -> None:
    """What a program of kernels leaves is what the graph that it was made of may return."""
    given = {slot: a for slot, a in inputs.items() if slot in slots_of(program)}
    contents = evaluate(program, given)
    assert isinstance(contents, dict)
    written = (base_of(c.src[1 + k]) for c in calls(program) for k in written_by(c))
    results = sorted({u.arg.slot for u in written if u.tag != TEMPORARY})  # type: ignore[union-attr]
    mismatch = compare(demanded(root, inputs), [contents[slot] for slot in results]).mismatch
    assert mismatch is None, mismatch.message
