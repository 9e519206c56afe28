"""How long the text of a StableHLO module takes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from figure import Figure, at_most, seconds

from uop.conformance.adapters.stablehlo.write import to_stablehlo
from uop.conformance.suite.case import Case
from uop.conformance.suite.generate import cases
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.frontend.tensor import Tensor
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, param

NODES, GRAPHS = 1000, 300


def stablehlo() -> Iterator[Figure]:
    """One long graph, and random ones of the suite."""
    long, graphs = chain(), [root for root in random_graphs() if has_image(root)]
    yield at_most(
        f"to_stablehlo, a graph of {len(long.toposort()):,} nodes",
        1000 * seconds(lambda: to_stablehlo(long), 5),
        100,
        "ms",
    )
    nodes = sum(len(root.toposort()) for root in graphs)
    taken = seconds(lambda: [to_stablehlo(root) for root in graphs], 3)
    name = f"- {len(graphs)} random graphs of {nodes / len(graphs):.0f} nodes on average, 1,000"
    yield Figure(name, "", f"{1e6 * taken / nodes:.3g} ms")


def chain() -> UOp:
    """Elementwise ops, folds and movement in turn."""
    x, y = (Tensor(param(slot, (8, 8), dtypes.float32)) for slot in range(2))
    result, step = x, 0
    while len(result.uop.toposort()) < NODES:
        step += 1
        result = (result * y + 0.5 * step).maximum(x)
        if step % 5 == 0:
            result = result.permute(1, 0).reshape(4, 16).reshape(8, 8)
        if step % 7 == 0:
            result = result.reduce(Op.ADD, 0).expand(8, 8)
    return result.uop


def random_graphs() -> Iterator[UOp]:
    drawn = (case for case in cases(["graph"]) if isinstance(case, Case))
    return (case.root for case in islice(drawn, GRAPHS))


def has_image(root: UOp) -> bool:
    try:
        to_stablehlo(root)
    except UnsupportedError:
        return False
    return True
