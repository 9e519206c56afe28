"""The adapters of libraries: the walk, the compositions, and backends that compile together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from graphs import SLOW, Inputs, demanded, graphs, stores
from hypothesis import given

from uop.conformance import backends
from uop.conformance.adapters import Builder, JointBackend, backend, build, identity_of, values_of
from uop.conformance.adapters.backend import bisect
from uop.conformance.adapters.compositions import compositions
from uop.conformance.adapters.onnx import library
from uop.conformance.backends import tinygrad_library
from uop.conformance.judging.compare import compare
from uop.conformance.protocol.types import Outcome, Outputs, Problem, ProblemKind, Program
from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.args import (
    BinaryArg,
    ConstArg,
    DTypeArg,
    FlipArg,
    PadArg,
    PadFill,
    PermuteArg,
    ReduceArg,
)
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.graph import slots_of
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, Shape
from uop.spec.text.program import parse, print_program
from uop.spec.uop import UOp, const, dims, param

EXTRAS = {
    "iree": "iree",
    "onnx-reference": "onnx",
    "onnxruntime": "onnxruntime",
    "openvino": "openvino",
    "stablehlo": "xla",
    "tinygrad": "tinygrad",
    "tvm": "tvm",
    "xla": "xla",
}
"""What to install for a backend, as README and pyproject.toml say it."""
FEW = frozenset(
    {
        *(Op.ADD, Op.MUL, Op.MAX, Op.DIV, Op.TRUNC, Op.XOR, Op.OR, Op.AND, Op.SHL, Op.SHR),
        *(Op.WHERE, Op.CAST, Op.CMPLT, Op.CMPNE, Op.CMPEQ, Op.EXP2, Op.LOG2, Op.SIN, Op.SQRT),
        Op.POW,
    }
)


class Nodes(Builder[UOp]):
    """A library with few ops, whose values are nodes: it demands what the walk promises."""

    ops = FEW
    partial = frozenset({Op.CDIV, Op.CMOD})

    def param(self, slot: int, dtype: DType, shape: Shape) -> UOp:
        return param(slot, shape, dtype)

    def const(self, value: Array, dtype: DType) -> UOp:
        if value.shape:
            return UOp(Op.BINARY, arg=BinaryArg(value.tobytes()))
        return UOp(Op.CONST, arg=ConstArg(int.from_bytes(value.tobytes(), "little"), dtype))

    def broadcast(self, x: UOp, shape: Shape) -> UOp:
        assert x.shape != shape
        ranked = (1,) * (len(shape) - len(x.shape)) + x.shape
        return UOp(Op.EXPAND, UOp(Op.RESHAPE, x, dims(ranked)), dims(shape))

    def reshape(self, x: UOp, shape: Shape) -> UOp:
        return UOp(Op.RESHAPE, x, dims(shape))

    def permute(self, x: UOp, order: Sequence[int]) -> UOp:
        return UOp(Op.PERMUTE, x, arg=PermuteArg(tuple(order)))

    def flip(self, x: UOp, axes: Sequence[int]) -> UOp:
        return UOp(Op.FLIP, x, arg=FlipArg(tuple(k in axes for k in range(len(x.shape)))))

    def pad(self, x: UOp, before: Sequence[int], after: Sequence[int]) -> UOp:
        shape = [b + n + a for b, n, a in zip(before, x.shape, after, strict=True)]
        return UOp(Op.PAD, x, dims(before), dims(shape), arg=PadArg(PadFill.ZERO))

    def shrink(self, x: UOp, start: Sequence[int], stop: Sequence[int]) -> UOp:
        kept = [b - a for a, b in zip(start, stop, strict=True)]
        return UOp(Op.SHRINK, x, dims(start), dims(kept))

    def reduce(self, op: Op, x: UOp, axes: Sequence[int]) -> UOp:
        assert axes
        assert all(x.shape[k] > 1 for k in axes)
        return UOp(Op.REDUCE, x, arg=ReduceArg(op, tuple(axes)))

    def stack(self, xs: Sequence[UOp]) -> UOp:
        return UOp(Op.STACK, *xs)

    def bitcast(self, x: UOp, dtype: DType, shape: Shape) -> UOp:
        made = UOp(Op.BITCAST, x, arg=DTypeArg(dtype))
        assert made.shape == shape
        return made

    def elementwise(self, op: Op, dtype: DType, xs: Sequence[UOp]) -> UOp:
        assert op in self.ops | self.partial
        assert len({x.shape for x in xs}) == 1
        made = UOp(op, *xs, arg=DTypeArg(dtype) if op is Op.CAST else None)
        assert made.dtype is dtype
        return made

    def take(self, x: UOp, axis: int, index: UOp) -> UOp:
        first = [axis, *(k for k in range(len(x.shape)) if k != axis)]
        picked = UOp(Op.INDEX, self.permute(x, first), index)
        return self.permute(picked, [first.index(k) for k in range(len(first))])


class Flooring(Nodes):
    """A library whose divisions floor too."""

    partial = frozenset(op for op, d in DECLARATIONS.items() if d.is_division)


@pytest.mark.slow
@SLOW
@given(graphs())
def test_the_walk_keeps_the_meaning_of_graphs(program: tuple[UOp, Inputs]) -> None:
    keeps_the_meaning(*program)


@SLOW
@given(stores())
def test_the_walk_keeps_the_meaning_of_stores(program: tuple[UOp, Inputs]) -> None:
    keeps_the_meaning(*program)


def keeps_the_meaning(root: UOp, inputs: Inputs) -> None:
    accepted = demanded(root, inputs)
    made = UOp(Op.TUPLE, *build(values_of(root), Nodes()))
    found = evaluate(made, {slot: inputs[slot] for slot in slots_of(made)})
    assert isinstance(found, tuple)
    mismatch = compare(accepted, found).mismatch
    assert mismatch is None, mismatch.message


EVERY_INT8 = [*range(-128, 128)]


@pytest.mark.parametrize(
    ("op", "exact"),
    [
        (Op.IDIV, lambda a, b: a // b),
        (Op.MOD, lambda a, b: a % b),
        (Op.CDIV, lambda a, b: int(a / b)),
        (Op.CMOD, lambda a, b: a - b * int(a / b)),
    ],
)
@pytest.mark.parametrize("library", [Nodes, Flooring])
def test_divisions_of_all_int8_with_a_library_whose_own_are_partial(
    library: type[Nodes], op: Op, exact: Callable[[int, int], int]
) -> None:
    """They end the process for 0, and for the lowest value by -1."""
    a, b = np.array([*product(EVERY_INT8, EVERY_INT8)], np.int8).T
    root = UOp(op, param(0, a.shape, dtypes.int8), param(1, b.shape, dtypes.int8))
    (made,) = build(values_of(root), library())
    divisions = [u for u in made.toposort() if u.op in library.partial]
    assert divisions
    for division in divisions:
        divisors = evaluate(division.src[1], {1: b})
        assert isinstance(divisors, np.ndarray)
        assert not np.isin(divisors, [0, -1]).any()
    found = evaluate(made, {0: a, 1: b})
    assert isinstance(found, np.ndarray)
    for x, y, z in zip(a.tolist(), b.tolist(), found.tolist(), strict=True):
        # Wraps: the lowest value divided by -1 is itself.
        assert y == 0 or z == (exact(x, y) + 128) % 256 - 128, (x, y)


@pytest.mark.parametrize(
    ("x", "key", "hashed"),
    [
        (0, 0, 0x99BA4EFE6B200159),
        (1, 0, 0xC0DE3F32508EFB2C),
        (2**64 - 1, 2**64 - 1, 0xBB002BE71CB996FC),
        (0x85A308D3243F6A88, 0x0370734413198A2E, 0x483DF7A0C4923A9C),
    ],
)
def test_threefry_by_words_of_32_bits(x: int, key: int, hashed: int) -> None:
    """The vectors of its authors."""
    root = UOp(Op.THREEFRY, const(x, dtypes.uint64), const(key, dtypes.uint64))
    (made,) = build(values_of(root), Nodes())
    assert Op.THREEFRY not in {u.op for u in made.toposort()}
    assert int(np.asarray(evaluate(made))) == hashed


def test_what_a_library_lacks_is_composed_of_what_it_has_or_missing() -> None:
    table = compositions(FEW, frozenset({Op.CDIV, Op.CMOD}))
    assert table[Op.ADD] == frozenset()
    assert table[Op.SUB] == {Op.ADD, Op.MUL}
    assert table[Op.RECIP] == {Op.DIV}
    assert Op.CDIV in table[Op.IDIV]
    without = compositions(FEW - {Op.DIV, Op.EXP2}, frozenset())
    # DIV by RECIP and RECIP by DIV lead to each other, and EXP2 has no exact composition.
    assert not {Op.DIV, Op.RECIP, Op.EXP2, Op.IDIV} & without.keys()


def test_an_op_without_a_composition_is_unsupported() -> None:
    class Fewer(Nodes):
        ops = FEW - {Op.SIN}

    root = UOp(Op.SIN, param(0, (2,), dtypes.float32))
    with pytest.raises(UnsupportedError, match="the library has no SIN"):
        build(values_of(root), Fewer())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "%0 = BUFFER [2] {slot=0, dtype=int32, addrspace=GLOBAL}\n"
            "%1 = PARAM [2] {slot=0, dtype=int32, addrspace=GLOBAL}\n%2 = INDEX %1, 0\n"
            "%3 = CONST {value=1, dtype=int32}\n%4 = STORE %2, %3\n%5 = SINK %4\n"
            "%6 = CALL %5, %0\n%7 = SINK %6",
            "expected a tensor program, found one of the kind kernel",
        ),
        ('%0 = PARAM [2] {slot=0, dtype=int32, device=("A","B")}', "on the devices"),
        (
            "%0 = PARAM [] {slot=0, dtype=index, min=1, max=4}\n"
            "%1 = CONST {value=1, dtype=int32}\n%2 = RESHAPE %1, [1]\n%3 = STACK %0\n"
            "%4 = EXPAND %2, %3",
            "expected sizes that are numbers",
        ),
    ],
)
def test_other_programs_are_unsupported(text: str, said: str) -> None:
    with pytest.raises(UnsupportedError, match=said):
        build(values_of(parse(text)), Nodes())


@pytest.mark.parametrize(
    ("op", "dtype", "value"),
    [
        (Op.ADD, dtypes.float32, 0.0),
        (Op.MUL, dtypes.int8, 1),
        (Op.MAX, dtypes.uint8, 0),
        (Op.MAX, dtypes.float16, -np.inf),
        (Op.MAX, dtypes.fp8e4m3, -448.0),
        (Op.MIN, dtypes.bool, True),
    ],
)
def test_identities(op: Op, dtype: DType, value: float) -> None:
    found = identity_of(op, dtype)
    assert (found.dtype, found.shape, float(found)) == (np_dtype(dtype), (), value)


def test_items_that_do_not_compile_together_are_halved() -> None:
    tried: list[list[int]] = []

    def summed(items: Sequence[int]) -> int:
        tried.append([*items])
        if 3 in items:
            raise ValueError("3")
        return sum(items)

    first, bad, last = bisect([1, 2, 3, 4], summed, (ValueError,))
    assert first == ([1, 2], 3)
    assert bad[0] == [3]
    assert isinstance(bad[1], ValueError)
    assert last == ([4], 4)
    assert tried == [[1, 2, 3, 4], [1, 2], [3, 4], [3], [4]]
    assert bisect([], summed, ()) == []
    with pytest.raises(ValueError, match="3"):
        bisect([3], summed, (KeyError,))


class Together(JointBackend[UOp]):
    """Compiles programs together; refuses NEG when it compiles, and SQRT when it runs."""

    name, distribution, builder = "together", "numpy", Nodes
    dtypes = frozenset({dtypes.float32})
    errors = (ArithmeticError,)

    def __init__(self) -> None:
        self.compiles = 0

    def prepared(self, root: UOp) -> UOp:
        if root.op is Op.SIN:
            raise UnsupportedError("no SIN")
        return root

    def together(
        self, programs: Sequence[UOp]
    ) -> Callable[[Sequence[Inputs]], list[tuple[Array, ...]]]:
        self.compiles += 1
        if any(u.op is Op.NEG for u in programs):
            raise ArithmeticError("no NEG")

        def run(batches: Sequence[Inputs]) -> list[tuple[Array, ...]]:
            if any(u.op is Op.SQRT for u in programs):
                raise ArithmeticError("no SQRT")
            pairs = zip(programs, batches, strict=True)
            return [(np.asarray(evaluate(u, inputs)),) for u, inputs in pairs]

        return run


def asked(*ops: Op) -> tuple[Together, Sequence[Outcome]]:
    x = param(0, (2,), dtypes.float32)
    batches = ({0: np.array([4, 9], np.float32)}, {0: np.array([16, 25], np.float32)})
    backend = Together()
    texts = [print_program(UOp(op, x)) for op in ops]
    counts = [1 + k % 2 for k in range(len(ops))]
    return backend, backend.run(
        [Program(t, batches[:n]) for t, n in zip(texts, counts, strict=True)]
    )


def test_programs_are_compiled_together() -> None:
    backend, outcomes = asked(Op.TRUNC, Op.CONTIGUOUS, Op.TRUNC)
    assert backend.compiles == 1
    found = [o.batches for o in outcomes if isinstance(o, Outputs)]
    assert [[b[0].tolist() for b in batches] for batches in found] == [
        [[4.0, 9.0]],
        [[4.0, 9.0], [16.0, 25.0]],
        [[4.0, 9.0]],
    ]


class Lacking(Together):
    """Its builder has no SIN, and its compiler implements nothing."""

    errors = (NotImplementedError,)

    def prepared(self, root: UOp) -> UOp:
        class Fewer(Nodes):
            ops = FEW - {Op.SIN}

        return build(values_of(root), Fewer())[0]

    def together(self, programs: Sequence[UOp]) -> Callable[[Sequence[Inputs]], list[Any]]:
        raise NotImplementedError("no float32")


@pytest.mark.parametrize(
    ("op", "reason"),
    [
        (Op.TRUNC, "NotImplementedError: no float32"),
        # Without the node, which would make a reason of each shape.
        (Op.SIN, "the library has no SIN, nor a composition of it"),
    ],
)
def test_what_a_library_lacks_is_skipped_with_one_reason(op: Op, reason: str) -> None:
    text = print_program(UOp(op, param(0, (2,), dtypes.float32)))
    (found,) = Lacking().run([Program(text, ({0: np.ones(2, np.float32)},))])
    assert isinstance(found, Problem)
    assert (found.kind, found.message) == (ProblemKind.UNSUPPORTED, reason)


def test_a_program_that_fails_costs_no_other() -> None:
    _, outcomes = asked(Op.TRUNC, Op.NEG, Op.SIN, Op.SQRT, Op.TRUNC)
    kinds = [o.kind if isinstance(o, Problem) else None for o in outcomes]
    compile_, unsupported, internal = (
        ProblemKind.COMPILE,
        ProblemKind.UNSUPPORTED,
        ProblemKind.INTERNAL,
    )
    assert kinds == [None, compile_, unsupported, internal, None]


def test_an_error_that_is_not_the_librarys_is_not_hidden() -> None:
    class Broken(Together):
        def prepared(self, root: UOp) -> UOp:
            raise KeyError("a fault of the adapter")

    x = print_program(UOp(Op.NEG, param(0, (2,), dtypes.float32)))
    with pytest.raises(KeyError):
        Broken().run([Program(x)])


@pytest.mark.parametrize("name", EXTRAS)
def test_a_backend_without_its_library_says_what_to_install(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(module: str) -> None:
        raise ModuleNotFoundError(f"No module named {module!r}")

    for importing in (backend, tinygrad_library):
        monkeypatch.setattr(importing, "import_module", missing)
    library.onnx.cache_clear()
    with pytest.raises(UnsupportedError, match=rf'pip install "uop\[{EXTRAS[name]}\]"'):
        backends.load(name).hello()
