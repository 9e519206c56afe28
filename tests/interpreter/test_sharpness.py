"""Sets are sharp: the outermost value inside is accepted, the next one outside is refused.

For every op and dtype, judged as the suite judges a backend, against oracles that share no code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import product

import numpy as np
import pytest
from kernels import matrices, special, sums, warp_product
from oracles import allowed
from oracles.allowed import Allowed, bits_of, key_of, keys_of
from oracles.exact import specials

from uop.conformance.judging.compare import compare
from uop.interpreter.accept import accept
from uop.interpreter.kernel.fragments import SHAPES, fragments_of
from uop.interpreter.numeric.storage import BITS, Array, from_bits, np_dtype
from uop.spec.args import (
    BinaryArg,
    BufferArg,
    ConstArg,
    DTypeArg,
    FlipArg,
    GetTupleArg,
    LoadArg,
    PadArg,
    PadFill,
    PermuteArg,
    ReduceArg,
    ReplicatedArg,
    SliceArg,
    WmmaArg,
)
from uop.spec.dtype import DTYPES, DType, Kind, dtypes
from uop.spec.errors import InvalidError
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.uop import UOp, dims, index_const, param

VALUES = tuple(d for d in DTYPES.values() if d.kind is not Kind.VOID)
STORED = tuple(d for d in VALUES if d.kind is not Kind.INDEX)
REALS = (0.3, 1.0, -2.0, 3.0, 0.75, math.pi / 2, 5.25, -0.3, 2.0**-5, 0.5, -3 * math.pi / 2, 1.5)
COUNT = 12


@dataclass(frozen=True, slots=True)
class Probe:
    """A program of one output, and what each element of it may be."""

    root: UOp
    inputs: dict[int, Array]
    expected: list[Allowed]
    dtype: DType


def check(probe: Probe) -> None:
    """Every end of every set passes, every value next to it fails there."""
    sets = accept(probe.root, probe.inputs)
    storage = BITS[probe.dtype.itemsize]
    columns = [inside(probe.dtype, a) for a in probe.expected]
    shape = sets[0].value.data.shape
    assert math.prod(shape) == len(columns)
    for k in range(max(map(len, columns), default=0)):
        row = np.array([bits[min(k, len(bits) - 1)] for bits in columns], storage)
        found = compare(sets, [from_bits(row, probe.dtype).reshape(shape)])
        assert found.mismatch is None, (probe.root.op, found.mismatch)
    ends = np.array([bits[0] for bits in columns], storage)
    for k in range(0, len(columns), 1 + len(columns) // 32):
        for bits in outside(probe.dtype, probe.expected[k]):
            row = ends.copy()
            row[k] = bits
            found = compare(sets, [from_bits(row, probe.dtype).reshape(shape)])
            assert found.mismatch is not None, (probe, k, hex(bits), sets[0].describe(k))
            assert found.mismatch.element == k


def inside(dtype: DType, a: Allowed) -> list[int]:
    """Bits of the outermost values that are allowed."""
    if a.anything:
        return [bits_of(dtype, end) for end in (keys_of(dtype)[0], keys_of(dtype)[-1])]
    if a.payload is not None:
        return [a.payload]
    ends = [bits_of(dtype, k) for k in (a.lo, a.hi) if k is not None]
    return [*ends, *nans(dtype)] if a.nan else ends


def outside(dtype: DType, a: Allowed) -> Iterator[int]:
    """Bits of the values next to what is allowed."""
    if a.anything:
        return
    if a.payload is not None or a.lo is None or a.hi is None:
        yield from (bits_of(dtype, k) for k in (0, keys_of(dtype)[0], keys_of(dtype)[-1]))
    else:
        yield from (bits_of(dtype, k) for k in (a.lo - 1, a.hi + 1) if k in keys_of(dtype))
    if dtype.is_float and not a.nan:
        yield from (bits for bits in nans(dtype) if bits != a.payload)


def nans(dtype: DType) -> list[int]:
    """NaNs of both signs and, where there are any, of several payloads."""
    form = dtype.format
    quiet = form.nan_bits
    return [quiet, quiet | form.sign_bit, *([form.sign_bit - 1] if form.has_inf else [])]


def sample(dtype: DType) -> list[int]:
    """Bits of usual values, then of special ones."""
    if dtype.is_float:
        chosen = [dtype.encode(x) for x in REALS]
        return list(dict.fromkeys((*chosen, *specials(dtype)[::5], dtype.format.sign_bit, 0)))
    if dtype.kind is Kind.BOOL:
        return [0, 1]
    most = 1 << (20 if dtype.kind is Kind.INDEX else dtype.bits - 1)
    small = (1, 2, 3, 7, -1, -7, 100, -100, most - 1, -most, 5, 0)
    return [dtype.encode(x) for x in small if x >= 0 or dtype.is_signed]


def array(dtype: DType, bits: list[int]) -> Array:
    return from_bits(np.array(bits, BITS[dtype.itemsize]), dtype)


def combined(columns: list[list[int]]) -> list[tuple[int, ...]]:
    """Operands side by side, shifted against each other in several ways."""
    if len(columns) == 1:
        return [(bits,) for bits in columns[0]]
    every = list(product(*columns))
    step = max(1, len(every) // (2 * COUNT)) | 1
    return every[::step]


def elementwise(op: Op, dtype: DType) -> Iterator[Probe]:
    if op is Op.THREEFRY:
        points: list[tuple[int, ...]] = list(allowed.THREEFRY)
    else:
        kinds = [dtype] * len(DECLARATIONS[op].src)
        kinds[:1] = [dtypes.bool] if op is Op.WHERE else kinds[:1]
        points = combined([sample(kind) for kind in kinds])
    kinds = [dtypes.bool if op is Op.WHERE and k == 0 else dtype for k in range(len(points[0]))]
    result = dtypes.bool if op in allowed.COMPARISONS else dtype
    inputs = {k: array(d, [p[k] for p in points]) for k, d in enumerate(kinds)}
    root = UOp(op, *(param(k, (len(points),), d) for k, d in enumerate(kinds)))
    yield Probe(root, inputs, [allowed.of(op, dtype, *p) for p in points], result)


def casts(op: Op, dtype: DType) -> Iterator[Probe]:
    """From one dtype to every other."""
    for target in VALUES:
        bits = sample(dtype)[::3]
        try:
            root = UOp(op, param(0, (len(bits),), dtype), arg=DTypeArg(target))
        except InvalidError:
            assert dtype.is_float
            assert target is dtypes.index
            continue
        expected = [allowed.cast(dtype, target, b) for b in bits]
        yield Probe(root, {0: array(dtype, bits)}, expected, target)


def bitcasts(op: Op, dtype: DType) -> Iterator[Probe]:
    count = 8 // dtype.itemsize
    bits = (sample(dtype)[::-2] * 8)[:count]
    data = b"".join(b.to_bytes(dtype.itemsize, "little") for b in bits)
    for target in STORED:
        if dtype.kind is Kind.INDEX or (target.kind is Kind.BOOL and dtype.kind is not Kind.BOOL):
            continue
        size = target.itemsize
        parts = [data[k : k + size] for k in range(0, len(data), size)]
        root = UOp(op, param(0, (count,), dtype), arg=DTypeArg(target))
        expected = [allowed.copied(target, int.from_bytes(p, "little")) for p in parts]
        yield Probe(root, {0: np.frombuffer(data, np_dtype(dtype))}, expected, target)


Build = Callable[[UOp], UOp]
Move = Callable[[Array], Array]


def pair(*values: int) -> UOp:
    return UOp(Op.STACK, *map(index_const, values))


def called(t: UOp) -> UOp:
    body = UOp(Op.TUPLE, param(0, (2, 3), t.dtype))
    return UOp(Op.GETTUPLE, UOp(Op.FUNCTION, body, t), arg=GetTupleArg(0))


COPIES: dict[Op, tuple[Build, Move]] = {
    Op.PERMUTE: (lambda t: UOp(Op.PERMUTE, t, arg=PermuteArg((1, 0))), np.transpose),
    Op.FLIP: (lambda t: UOp(Op.FLIP, t, arg=FlipArg((False, True))), lambda a: a[:, ::-1]),
    Op.RESHAPE: (lambda t: UOp(Op.RESHAPE, t, dims((6,))), np.ravel),
    Op.EXPAND: (
        lambda t: UOp(Op.EXPAND, UOp(Op.RESHAPE, t, dims((2, 1, 3))), dims((2, 2, 3))),
        lambda a: np.repeat(a[:, None], 2, axis=1),
    ),
    Op.PAD: (
        lambda t: UOp(Op.PAD, t, dims((1, 0)), dims((3, 4)), arg=PadArg(PadFill.ZERO)),
        lambda a: np.pad(a, ((1, 0), (0, 1))),
    ),
    Op.SHRINK: (lambda t: UOp(Op.SHRINK, t, dims((1, 1)), dims((1, 2))), lambda a: a[1:, 1:]),
    Op.INDEX: (lambda t: UOp(Op.INDEX, t, index_const(1), pair(2, 0)), lambda a: a[1, [2, 0]]),
    Op.STACK: (lambda t: UOp(Op.STACK, t, t), lambda a: np.stack([a, a])),
    Op.REPLICATED: (
        lambda t: UOp(Op.REPLICATED, UOp(Op.STACK, t, t), arg=ReplicatedArg((0,))),
        lambda a: a[None],
    ),
    **{
        op: (lambda t, op=op: UOp(op, t), lambda a: a)  # type: ignore[misc]
        for op in (Op.CONTIGUOUS, Op.CONTIGUOUSBACKWARD, Op.DETACH, Op.NOOP, Op.PRECAST)
    },
    Op.LOAD: (lambda t: UOp(Op.LOAD, t, arg=LoadArg()), lambda a: a),
    Op.SLICE: (
        lambda t: UOp(Op.SLICE, t, index_const(2), arg=SliceArg(3, t.dtype)),
        lambda a: a.reshape(-1)[2:5],
    ),
    Op.FUNCTION: (called, lambda a: a),
    Op.PARAM: (lambda t: t, lambda a: a),
}


def copies(op: Op, dtype: DType) -> Iterator[Probe]:
    """Six values that only move."""
    bits = (sample(dtype)[::-1] * 6)[:6]
    build, move = COPIES[op]
    moved = move(np.array(bits, np.uint64).reshape(2, 3)).reshape(-1).tolist()
    inputs = {0: array(dtype, bits).reshape(2, 3)}
    expected = [allowed.copied(dtype, b) for b in moved]
    yield Probe(build(param(0, (2, 3), dtype)), inputs, expected, dtype)


def constants(op: Op, dtype: DType) -> Iterator[Probe]:
    for bits in sample(dtype):
        constant = UOp(op, arg=ConstArg(bits, dtype))
        yield Probe(constant, {}, [allowed.copied(dtype, bits)], dtype)


def machine_code(op: Op, dtype: DType) -> Iterator[Probe]:
    if dtype is dtypes.uint8:
        data = bytes([0, 7, 128, 255])
        yield Probe(UOp(op, arg=BinaryArg(data)), {}, [allowed.at(b) for b in data], dtype)


def stored(op: Op, dtype: DType) -> Iterator[Probe]:
    """In the first half of a buffer; the other half stays as it was."""
    old, new = ((sample(dtype)[k::2] * 4)[:4] for k in (0, 1))
    buffer = UOp(Op.BUFFER, dims((4,)), arg=BufferArg(0, dtype))
    half = UOp(Op.SHRINK, buffer, dims((0,)), dims((2,)))
    inputs = {0: array(dtype, old), 1: array(dtype, new[:2])}
    write = UOp(Op.STORE, half, param(1, (2,), dtype))
    expected = [allowed.copied(dtype, b) for b in (*new[:2], *old[2:])]
    root = UOp(Op.AFTER, buffer, write) if op is Op.AFTER else UOp(Op.SINK, write)
    yield Probe(root, inputs, expected, dtype)


TERMS = (
    (0.3, 1.5, -2.0, 3.0),
    (1.0, -1.0),
    (1.5,),
    (0.3, 0.75, 5.25, -0.125, 2.0, 1.0, 1.0, 3.0, -0.3, 0.5),
    (1.25, 1.25, 0.75),
)
SPECIAL_TERMS = ((math.inf, 1.0), (math.inf, -math.inf), (math.nan, 1.0))


def folds(op: Op, dtype: DType) -> Iterator[Probe]:
    rows: tuple[tuple[float, ...], ...] = TERMS if dtype.is_float else ((), (1, 1, 0))
    if dtype.kind not in (Kind.FLOAT, Kind.BOOL):
        rows = ((), (7, 100, 100, 3), (5, 3, 2), (6,), (100, 100, 100))
    if dtype.kind is Kind.FLOAT and dtype.format.has_inf:
        rows += SPECIAL_TERMS
    for fold, row in product((Op.ADD, Op.MUL, Op.MAX, Op.MIN), rows):
        bits = [dtype.encode(bool(x) if dtype.kind is Kind.BOOL else x) for x in row]
        if fold is Op.MUL and dtype.is_float and not keeps_in_range(dtype, bits):
            continue
        t = param(0, (len(row), 1), dtype)
        root = UOp(op, t, arg=ReduceArg(fold, (0,)))
        yield Probe(root, {0: array(dtype, bits)[:, None]}, [folded(fold, dtype, bits)], dtype)


def keeps_in_range(dtype: DType, bits: list[int]) -> bool:
    """Whether no partial product can under- or overflow, whatever the order."""
    magnitudes = [abs(float(dtype.decode(b))) for b in bits]
    if not all(map(math.isfinite, magnitudes)):
        return False
    least, most = (math.prod(f(1.0, m) for m in magnitudes) for f in (min, max))
    return least > 2.0 ** (dtype.format.emin + 1) and most < dtype.format.finite(
        dtype.format.max_bits
    )


def folded(op: Op, dtype: DType, bits: list[int]) -> Allowed:
    terms = [dtype.decode(b) for b in bits]
    if dtype.is_float and op in (Op.ADD, Op.MUL):
        rule = allowed.total if op is Op.ADD else allowed.multiplied
        return rule(dtype, [float(x) for x in terms])
    keys = keys_of(dtype)
    if any(x != x for x in terms):
        rest = [key_of(dtype, b) for b, x in zip(bits, terms, strict=True) if x == x]
        ends = (keys[0], max(rest)) if op is Op.MAX else (min(rest), keys[-1])
        return Allowed(*ends, nan=True)
    if not bits:
        return allowed.at({Op.ADD: 0, Op.MUL: 1, Op.MAX: keys[0], Op.MIN: keys[-1]}[op])
    result = reduce(lambda a, b: bits_of(dtype, _one(allowed.of(op, dtype, a, b))), bits)
    return allowed.copied(dtype, result)


def _one(a: Allowed) -> int:
    assert a.lo == a.hi is not None
    return a.lo


def sums_in_no_order(op: Op, dtype: DType) -> Iterator[Probe]:
    """An ATOMICADD is a fold of what stood there, 3, and the terms; its neighbour, 5, stays."""
    if dtype in (dtypes.bool, dtypes.index):
        return
    for row in ((0.3, 1.5, -2.0), (2.5,), (1.0, 2.0, 3.0, 4.0, 0.75)):
        bits = [dtype.encode(x if dtype.is_float else abs(int(x))) for x in row]
        root, inputs = sums(dtype, array(dtype, bits))
        three, five = dtype.encode(3), dtype.encode(5)
        expected = [folded(Op.ADD, dtype, [three, *bits]), allowed.copied(dtype, five)]
        yield Probe(root, inputs, expected, dtype)


def matrix_products(op: Op, dtype: DType) -> Iterator[Probe]:
    """E = k 2u (|acc| + sum |ab|) with u of the accumulator, 2^-13 for fp8."""
    for arg in SHAPES:
        if arg.dtype_out is dtype:
            yield _matrix_product(arg)


def _matrix_product(arg: WmmaArg) -> Probe:
    random, out = np.random.default_rng(arg.k), arg.dtype_out
    a, b = random.integers(-8, 9, (arg.m, arg.k)) / 8, random.integers(-8, 9, (arg.k, arg.n)) / 8
    acc = random.integers(-64, 65, (arg.m, arg.n)) / 4
    u = Fraction(1, 2**13) if arg.dtype_in.bits == 8 else Fraction(1, 2**out.format.precision)
    matrix = np.empty((arg.m, arg.n), object)
    for i, j in np.ndindex(arg.m, arg.n):
        terms = [Fraction(acc[i, j]), *map(Fraction, a[i] * b[:, j])]
        error = arg.k * 2 * u * sum(map(abs, terms))
        matrix[i, j] = allowed.nearest(out, sum(terms) - error, sum(terms) + error)
    expected = fragments_of(arg).acc.scatter(matrix).reshape(-1).tolist()
    root = warp_product(arg, special(32, "lidx0"))
    return Probe(root, matrices(arg, a, b, acc), expected, out)


PROBES: dict[Op, Callable[[Op, DType], Iterator[Probe]]] = {
    **{op: elementwise for op, d in DECLARATIONS.items() if d.dtypes and d.arg is None},
    **dict.fromkeys(COPIES, copies),
    Op.CAST: casts,
    Op.BITCAST: bitcasts,
    Op.CONST: constants,
    Op.BINARY: machine_code,
    Op.STORE: stored,
    Op.AFTER: stored,
    Op.REDUCE: folds,
    Op.ATOMICADD: sums_in_no_order,
    Op.WMMA: matrix_products,
}
WITHOUT_VALUES = {
    "no value but an effect or an order": (
        *(Op.CALL, Op.BARRIER, Op.IF, Op.ENDIF, Op.END, Op.GROUP, Op.SINK, Op.LINEAR),
        *(Op.PROGRAM, Op.SOURCE, Op.UNIQUE, Op.LUNIQUE, Op.DEVICE),
    ),
    "a counter, whose values are those of an index": (Op.RANGE, Op.SPECIAL),
    "a place, whose contents are those of a PARAM or STORE": (Op.BUFFER, Op.PTRADD),
    "several values, which GETTUPLE gives": (Op.TUPLE, Op.GETTUPLE),
    "any distinct addresses": (Op.GETADDR,),
    "what its registry or its name says": (Op.INS, Op.CUSTOM, Op.CUSTOMFUNCTION),
    "its operand, under a variable's name": (Op.BIND,),
    "exactly its decomposition": (Op.UNROLL, Op.CONTRACT, Op.STAGE, Op.ALLREDUCE),
}


def test_every_op_has_a_probe_or_a_reason_to_have_none() -> None:
    exempt = [op for ops in WITHOUT_VALUES.values() for op in ops]
    assert len(exempt) == len(set(exempt))
    assert not PROBES.keys() & set(exempt)
    assert PROBES.keys() | set(exempt) == DECLARATIONS.keys()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("op", PROBES, ids=lambda op: op.name)
def test_the_next_value_outside_is_refused(op: Op) -> None:
    for dtype in DECLARATIONS[op].dtypes or VALUES:
        for probe in PROBES[op](op, dtype):
            check(probe)
