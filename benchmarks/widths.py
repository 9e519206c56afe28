"""Compares the accepted sets of float sums and products with all results of orders and groupings.

`python benchmarks/widths.py [--seed N] [--folds N]`. The sets of REDUCE with ADD and MUL
are formulas; a ratio is the number of values in a set to those from the least to the largest result
of a fold: in each order and grouping, in the dtype or in float64 with one rounding at the end. Each
result must lie inside. A fold in other widths may give more, so a ratio bounds the excess.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import click
import numpy as np

from uop.interpreter.accept import accept
from uop.interpreter.accepted import order
from uop.interpreter.numeric.conversions import round_to
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.args import ReduceArg
from uop.spec.dtype import FLOATS, DType
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, param

Combine = Callable[[Array, Array], Array]
COMBINES: dict[Op, Combine] = {Op.ADD: np.add, Op.MUL: np.multiply}


def results(terms: tuple[Array, ...], combine: Combine) -> list[Array]:
    """The results of a fold in every order and grouping."""
    if len(terms) == 1:
        return [terms[0]]
    found: list[Array] = []
    first, *others = range(len(terms))
    for size in range(len(others)):
        for chosen in combinations(others, size):
            left = (first, *chosen)
            right = [k for k in others if k not in chosen]
            found += [
                combine(a, b)
                for a in results(tuple(terms[k] for k in left), combine)
                for b in results(tuple(terms[k] for k in right), combine)
            ]
    return found


def enumerated(op: Op, dtype: DType, terms: Array) -> tuple[Array, Array]:
    """The least and the largest result of all folds, as keys."""
    combine = COMBINES[op]

    def rounded(a: Array, b: Array) -> Array:
        return round_to(combine(a.astype(np.float64), b.astype(np.float64)), dtype)

    narrow = results(tuple(terms), combine if dtype.bits == 64 else rounded)
    wide = results(tuple(terms.astype(np.float64)), combine)
    every = [order.keys(a) for a in (*narrow, *(round_to(a, dtype) for a in wide))]
    return np.minimum.reduce(every), np.maximum.reduce(every)


def ratios(op: Op, dtype: DType, count: int, folds: int, seed: int) -> Array:
    """The ratio of each of many folds of numbers near 1."""
    random = np.random.default_rng([seed, count, dtype.bits])
    terms = random.standard_normal((count, folds)).astype(np_dtype(dtype))
    least, most = enumerated(op, dtype, terms)
    root = UOp(Op.REDUCE, param(0, terms.shape, dtype), arg=ReduceArg(op, (0,)))
    (accepted,) = accept(root, {0: terms})
    lo, hi = (order.keys(end.reshape(-1)) for end in (accepted.lo, accepted.hi))
    if not ((lo <= least) & (most <= hi)).all():
        raise click.ClickException(f"a result of {op.name} on {dtype.name} is not accepted")
    wide, narrow = (
        (order.distance(order.unkeys(a, terms.dtype), order.unkeys(b, terms.dtype)) + 1)
        for a, b in ((lo, hi), (least, most))
    )
    return wide / narrow


@click.command()
@click.option("--seed", default=0, show_default=True)
@click.option("--folds", default=1000, show_default=True)
def main(seed: int, folds: int) -> None:
    click.echo("| fold | terms | " + " | ".join(d.name for d in FLOATS) + " |")
    click.echo("|---|---|" + "---|" * len(FLOATS))
    for op in COMBINES:
        for count in (2, 3, 4):
            cells = [f"{np.median(ratios(op, dtype, count, folds, seed)):.2f}" for dtype in FLOATS]
            click.echo(f"| {op.name} | {count} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
