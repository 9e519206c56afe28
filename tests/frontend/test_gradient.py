"""Gradients equal derivatives: exactly for rational graphs, within rounding for all others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from oracles.derivatives import ENCLOSED, EXACT, ball, fraction, partials
from oracles.field import TieError, elements, evaluate_over

from uop import Tensor, const, dtypes, function, gradient, param
from uop.spec.args import DTypeArg, LanesArg, LoadArg, PadFill, SliceArg
from uop.spec.dtype import FLOATS
from uop.spec.errors import InvalidError, UnsupportedError
from uop.spec.frontend import compositions, views
from uop.spec.frontend.values import contents
from uop.spec.graph import inlined, leaves, slot_of
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.text.array import Array
from uop.spec.uop import UOp

Build = Callable[[Tensor, Tensor], Tensor]
SLICE = SliceArg(3, dtypes.float64)


def tensor(values: Any) -> Tensor:
    return Tensor(values, dtypes.float64)


def mirrored(x: Tensor) -> Tensor:
    return x.flip(-1)


def loaded(x: Tensor, y: Tensor) -> Tensor:
    return Tensor.of(Op.LOAD, x, y, y < 1.0, arg=LoadArg())


@function
def both(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    return a * a * b, a - b


@function(precompiled=True)
def once(a: Tensor, b: Tensor) -> Tensor:
    return a * a - b


# x is (2, 3), y is (3,): every operand of every op that has a rule, also broadcast.
RATIONAL: dict[str, Build] = {
    "add": lambda x, y: x + y,
    "add to itself": lambda x, y: x + x,
    "sub": lambda x, y: y - x,
    "mul": lambda x, y: x * y,
    "square": lambda x, y: x * x,
    "neg": lambda x, y: -x * y,
    "div": lambda x, y: x / y + y / x,
    "recip": lambda x, y: x.recip() * y,
    "mulacc": lambda x, y: x.mulacc(y, x),
    "max": lambda x, y: x.maximum(y),
    "min": lambda x, y: x.minimum(y),
    "where": lambda x, y: (x < y).where(x * y, y),
    "cast": lambda x, y: x.cast(dtypes.float64) * y,
    "permute": lambda x, y: x.reshape(1, 2, 3).permute(2, 0, 1) * y.reshape(3, 1, 1),
    "flip": lambda x, y: mirrored(x) * y,
    "reshape": lambda x, y: x.reshape(3, 2) * y.reshape(3, 1),
    "expand": lambda x, y: y.expand(4, 3).sum(0) * y * x,
    "pad with zeros": lambda x, y: x.pad((1, 0), (0, 2), fill=PadFill.ZERO).sum() * y,
    "pad, absent": lambda x, y: x * x.pad((0, 0), (1, 2)).shrink((0, 2), (0, 3)) + y,
    "absent times present": lambda x, y: (y.pad((3, 0)) * x.reshape(6)).sum() + x * y,
    "shrink": lambda x, y: x.shrink((1, 2), (0, 2)) * y[1:],
    "index by a number": lambda x, y: x[1] * y * x[0, 2],
    "index by numbers": lambda x, y: x[[1, 0, 1, 1]] * y[[2, 2, 0]],
    "index two axes": lambda x, y: (x[[1, 1], [0, 2]] * y[1]) * x[0, 0],
    "index at once": lambda x, y: Tensor.of(Op.INDEX, x * y, Tensor(1), Tensor([2, 0, 2])) * y,
    "index twice": lambda x, y: Tensor.of(Op.INDEX, x, Tensor([1, 0, 1]), Tensor([2, 2])) * y[0],
    "stack": lambda x, y: Tensor.stack(x, x * y).prod(0),
    "sum": lambda x, y: x.sum(0) * y,
    "product": lambda x, y: x.prod(1) * y.prod(),
    "product of two axes": lambda x, y: x.reshape(2, 3, 1).expand(2, 3, 2).prod((0, 2)) * y,
    "smallest": lambda x, y: Tensor(views.folded((x * y).uop, Op.MIN, 1)) * y,
    "the smaller one": lambda x, y: Tensor.of(Op.MIN, x, y) * y,
    "largest": lambda x, y: x.max(1) * y.max(),
    "slice": lambda x, y: Tensor.of(Op.SLICE, x, const(2, dtypes.index), arg=SLICE) * y,
    "replicated": lambda x, y: y.reshape(1, 3).expand(2, 3).replicated(0) * x,
    "markers": lambda x, y: x.contiguous() * y.contiguous_backward(),
    "load": lambda x, y: x.copy("CPU") * y,
    "load, gated": lambda x, y: loaded(x[0], y) * y,
    "gemm": lambda x, y: x @ y.reshape(3, 1),
    "prefix sum": lambda x, y: compositions.prefix_sum(y * y) * x,
    "gather": lambda x, y: compositions.gather(y, Tensor([2, 0, 2])) * x,
    "scatter_add": lambda x, y: compositions.scatter_add(y, Tensor([1, 1, 0]), x[1]) * x,
    "windows": lambda x, y: compositions.windows(x * x, 2, 2) * x[0, 1],
    "function": lambda x, y: function(lambda a, b: (a * b, [b * b]))(x, y)[1][0] * x,
    "both results of a function": lambda x, y: both(x, y)[0] * both(y, x)[1],
    "function, precompiled": lambda x, y: once(y, x) * x,
    "nested functions": lambda x, y: function(lambda a: function(lambda b: b * a)(a * a))(x) * y,
}

REAL: dict[str, Build] = {
    "exp2": lambda x, y: x.exp2() * y,
    "log2": lambda x, y: x.log2() * y.log2(),
    "sin": lambda x, y: (x * y).sin(),
    "sin of a large number": lambda x, y: (x * 1048576.0).sin() * y,
    "sqrt": lambda x, y: x.sqrt() / y.sqrt(),
    "pow": lambda x, y: x**y,
    "exp and log": lambda x, y: x.exp() * y.log(),
    "softmax": lambda x, y: compositions.softmax(x) * y,
    "layer norm": lambda x, y: compositions.layer_norm(x, y, y[0], 0.5) * x,
    "attention": lambda x, y: compositions.attention(x, x * y, x) * y,
}

# From (2, 3) to (2, 3), to be put one after another.
STEPS: list[Build] = [
    lambda t, y: t * y,
    lambda t, y: y - t,
    lambda t, y: t * t,
    lambda t, y: t.flip((0, 1)).maximum(y),
    lambda t, y: t.reshape(3, 2).permute(1, 0) + t,
    lambda t, y: t.pad((0, 0), (1, 0)).shrink_to(2, 3) * y,
    lambda t, y: t + t.pad((0, 1), (0, 0)).shrink((1, 3), (0, 3)),
    lambda t, y: (t < y).where(t, t.pad((0, 0), (0, 2)).shrink((0, 2), (2, 5))),
    lambda t, y: t + t.reduce(Op.MAX, 1),
    lambda t, y: t * t.reduce(Op.ADD, 0),
    lambda t, y: t + t.reduce(Op.MUL, (0, 1)),
    lambda t, y: t[[1, 1]] + y[[2, 0, 2]],
    lambda t, y: t.pad((1, 1), (0, 1), fill=PadFill.ZERO)[1:3, 1:4],
    lambda t, y: function(lambda a, b: [b, a * b])(t, y)[1],
    lambda t, y: t.detach() * y + t,
]

X = [[0.5, 1.25, -3.0], [2.0, -0.75, 1.5]]
Y = [1.5, -2.0, 0.25]
# No ties, and positive, for roots and logarithms.
POSITIVE_X, POSITIVE_Y = [[0.5, 1.25, 3.0], [2.0, 0.75, 1.5]], [1.75, 2.5, 0.25]


def leaf(t: Tensor) -> UOp:
    assert t.uop.op is Op.BUFFER
    return t.uop


def positions(t: Tensor) -> dict[UOp, Any]:
    """The integers that a graph indexes by."""
    held = contents(t.uop)
    found = {u: held[slot_of(u)] for u in leaves(t.uop) if u.dtype.is_int}
    return {u: Array(h.dtype, h.shape, h.data).values for u, h in found.items()}


def plain(t: Tensor) -> UOp:
    return inlined(t.uop)


@pytest.mark.parametrize("name", RATIONAL)
def test_rational_graphs_have_the_derivatives_of_dual_fractions(name: str) -> None:
    x, y = tensor(X), tensor(Y)
    loss = (RATIONAL[name](x, y) * 3.0).sum()
    given = {**positions(loss), leaf(x): X, leaf(y): Y}
    exact = {u: elements(v, fraction if u.dtype.is_float else int) for u, v in given.items()}
    for target, found in zip((x, y), gradient(loss, (x, y)), strict=True):
        wanted = partials(fraction, plain(loss), given, leaf(target))
        if found is None:
            assert not wanted.any()
            continue
        assert (found.shape, found.dtype) == (target.shape, target.dtype)
        np.testing.assert_array_equal(evaluate_over(EXACT, plain(found), exact), wanted)
        if name not in ("div", "recip"):  # All others stay in halves of halves: nothing rounds.
            np.testing.assert_array_equal(found.numpy(), wanted)


def test_through_a_function_each_argument_has_its_own() -> None:
    """By hand, since the other tests inline functions as the gradient does."""
    x, y = tensor([2.0, -3.0]), tensor([5.0, 0.5])
    square, difference = both(y, x)
    found = gradient((square + difference * 7.0 + once(x, y)).sum(), [x, y])
    a, b = np.array(x.tolist()), np.array(y.tolist())
    assert values(found) == [(b * b - 7 + 2 * a).tolist(), (2 * a * b + 7 - 1).tolist()]


@given(st.lists(st.sampled_from(range(len(STEPS))), min_size=2, max_size=4))
@settings(max_examples=40, deadline=None)
def test_any_steps_have_the_derivatives_of_dual_fractions(steps: list[int]) -> None:
    x, y = tensor(X), tensor(Y)
    t = x
    for step in steps:
        t = STEPS[step](t, y)
    loss = t.sum()
    given = {**positions(loss), leaf(x): X, leaf(y): Y}
    exact = {u: elements(v, fraction if u.dtype.is_float else int) for u, v in given.items()}
    for target, found in zip((x, y), gradient(loss, (x, y)), strict=True):
        try:
            wanted = partials(fraction, plain(loss), given, leaf(target))
        except TieError:
            reject()
        got = 0 * wanted if found is None else evaluate_over(EXACT, plain(found), exact)
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("name", REAL)
def test_other_graphs_have_the_derivatives_of_dual_balls(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One enclosure holds the derivative and what float64 gives: it allows for every rounding."""
    monkeypatch.setattr(ctx, "prec", 256)
    x, y = tensor(POSITIVE_X), tensor(POSITIVE_Y)
    loss = (REAL[name](x, y) * 3.0).sum()
    given = {leaf(x): POSITIVE_X, leaf(y): POSITIVE_Y}
    balls = {u: elements(v, ball) for u, v in given.items()}
    for target, found in zip((x, y), gradient(loss, (x, y)), strict=True):
        assert found is not None
        wanted = partials(ball, plain(loss), given, leaf(target))
        enclosed = evaluate_over(ENCLOSED, plain(found), balls)
        computed = found.numpy()
        for where in np.ndindex(target.shape):
            assert enclosed[where].contains(arb(float(computed[where]))), (where, enclosed[where])
            assert enclosed[where].overlaps(wanted[where]), (where, enclosed[where], wanted[where])
            wrong = wanted[where] + (abs(wanted[where]) + 1) * arb(2) ** -20
            assert not enclosed[where].overlaps(wrong), "the enclosure is too wide to tell"


polynomials = st.recursive(
    st.sampled_from(["x", "y", "2", "-3"]),
    lambda inner: st.tuples(st.sampled_from("+-*"), inner, inner),
    max_leaves=5,
)


def polynomial(tree: Any, x: Tensor, y: Tensor) -> Tensor:
    if isinstance(tree, str):
        return {"x": x, "y": y}[tree] if tree in "xy" else Tensor(float(tree), dtypes.float64)
    op, a, b = tree[0], polynomial(tree[1], x, y), polynomial(tree[2], x, y)
    return a + b if op == "+" else a - b if op == "-" else a * b


@given(polynomials, st.integers(-3, 3), st.integers(-3, 3))
@settings(max_examples=40, deadline=None)
def test_differences_in_float64_are_the_gradient(tree: Any, at: int, other: int) -> None:
    """Degree 5 at most, small integers: nothing rounds, and the six-point rule is exact."""

    def value(x: float) -> float:
        return float(polynomial(tree, tensor(x), tensor(float(other))).numpy())

    x = tensor([float(at)]).reshape(())
    found = gradient(polynomial(tree, x, tensor(float(other))), [x])[0]
    slope = 0.0 if found is None else found.item()
    weights = {1: 45.0, 2: -9.0, 3: 1.0}
    differences = sum(w * (value(at + h) - value(at - h)) for h, w in weights.items())
    assert differences == 60 * slope


def test_a_second_gradient_is_the_second_derivative() -> None:
    x = tensor([2.0, -3.0, 0.5])
    (slope,) = gradient((x * x * x).sum(), [x])
    assert slope is not None
    (curve,) = gradient((slope * slope).sum(), [x])
    assert curve is not None
    assert curve.tolist() == [36 * v**3 for v in (2.0, -3.0, 0.5)]


def test_ties_share() -> None:
    x, y = tensor([1.0, 2.0, 2.0]), tensor([1.0, 5.0, 0.0])
    assert values(gradient(x.max(), [x])) == [[0.0, 0.5, 0.5]]
    assert values(gradient(x.maximum(y).sum(), [x, y])) == [[0.5, 0.0, 1.0], [0.5, 1.0, 0.0]]


def test_a_product_with_zeros() -> None:
    x = tensor([[2.0, 0.0, 3.0], [0.0, 0.0, 4.0]])
    assert values(gradient(x.prod(1).sum(), [x])) == [[[0.0, 6.0, 0.0], [0.0, 0.0, 0.0]]]


def test_powers_at_zero() -> None:
    x, y = tensor([0.0, 0.0, 3.0]), tensor([2.0, 1.0, 0.0])
    assert values(gradient((x**y).sum(), [x]))[0] == [0.0, 1.0, 0.0]
    assert values(gradient((x**y).sum(), [y]))[0][:2] == [0.0, 0.0]


def test_detach_stops_it() -> None:
    x = tensor([3.0])
    assert values(gradient((x * x.detach()).sum(), [x])) == [[3.0]]
    assert gradient(x.detach().sum(), [x]) == (None,)


def test_contiguousbackward_acts_in_it() -> None:
    x = tensor([3.0, 1.0])
    (found,) = gradient((x.contiguous_backward() * 2.0).sum(), [x])
    assert found is not None
    assert found.uop.op is Op.CONTIGUOUS
    assert found.tolist() == [2.0, 2.0]


def test_what_is_no_float_or_not_reached_has_none() -> None:
    x, n, b = tensor([1.0, 2.0]), Tensor([1, 2]), Tensor([True, False])
    loss = b.where(x * n.cast(dtypes.float64), (x < 2.0).cast(dtypes.float64)).sum()
    found = gradient(loss, [x, n, b, tensor([1.0])])
    assert found[0] is not None
    assert found[0].tolist() == [1.0, 0.0]
    assert found[1:] == (None, None, None)
    assert gradient((x < 2.0).cast(dtypes.float64).sum(), [x]) == (None,)
    assert gradient(x.trunc().sum(), [x]) == (None,)


def test_an_intermediate_target() -> None:
    x = tensor([2.0])
    y = x * x
    assert values(gradient((y * y).sum(), [y, x])) == [[8.0], [32.0]]
    assert values(gradient(y.reshape(()), [y.reshape(())])) == [1.0]


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_every_float_dtype(dtype: Any) -> None:
    x = Tensor([1.5, -2.0], dtype)
    wide = x.cast(dtypes.float64)
    (found,) = gradient((wide * wide).sum(), [x])
    assert found is not None
    assert found.dtype is dtype
    assert found.tolist() == [3.0, -4.0]


def test_a_deep_chain_needs_no_recursion() -> None:
    x = tensor([1.0])
    y = x
    for _ in range(5000):
        y = y + x
    assert values(gradient(y.sum(), [x])) == [[5001.0]]


def test_the_loss_is_one_float() -> None:
    x = tensor([1.0, 2.0])
    for loss in (x, Tensor(1)):
        with pytest.raises(InvalidError, match=r"GRADIENT\.c1") as caught:
            gradient(loss, [x])
        assert caught.value.where.startswith(f"{__file__}:")


def test_what_has_no_gradient_says_so() -> None:
    lanes = Tensor.of(Op.UNROLL, tensor([1.0, 2.0]), arg=LanesArg((0,), (2,)))
    with pytest.raises(UnsupportedError, match="UNROLL"):
        gradient(lanes.sum(), [Tensor(lanes.uop.src[0])])


def test_every_op_on_floats_has_a_rule() -> None:
    """Or a decomposition into ops that have one."""
    for declaration in DECLARATIONS.values():
        if not declaration.is_elementwise or dtypes.float32 not in declaration.dtypes:
            continue
        operands = [param(k, (), dtypes.float32) for k in range(len(declaration.src))]
        if declaration.op is Op.WHERE:
            operands[0] = param(0, (), dtypes.bool)
        arg = DTypeArg(dtypes.float16) if declaration.op is Op.CAST else None
        is_float = UOp(declaration.op, *operands, arg=arg).dtype.is_float
        known = declaration.gradient or declaration.decomposition
        assert known or not is_float, declaration.op


def values(found: tuple[Tensor | None, ...]) -> list[Any]:
    return [None if g is None else g.tolist() for g in found]
