"""How long the compiler takes: all stages and the source, no driver.

`python benchmarks/lowering.py` prints processor time, the median of turns: for a product of
matrices with the optimizations that the compiler chooses, for a kernel of one op, and for a chain
of 10,000 elementwise ops next to ten chains of 1,000.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import click

from uop.compiler.pipeline import compile
from uop.spec.dtype import dtypes
from uop.spec.frontend.compositions import gemm
from uop.spec.frontend.tensor import Tensor
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, param

TURNS = 9
LONG, SHORT = 10_000, 1_000


def product(n: int) -> UOp:
    a, b = (Tensor(param(slot, (n, n), dtypes.float32)) for slot in range(2))
    root: UOp = gemm(a, b).uop
    return root


def chain(length: int) -> UOp:
    x = root = param(0, (64,), dtypes.float32)
    for number in range(length):
        root = UOp((Op.ADD, Op.MUL)[number % 2], root, x)
    return root


def compiled(root: Callable[[], UOp], times: int = 1) -> float:
    """Seconds of processor time to compile new graphs, which nothing is kept of."""
    begun = time.process_time()
    for _ in range(times):
        assert compile(root()).source
    return time.process_time() - begun


def main() -> None:
    compiled(lambda: chain(1))
    for name, root in (("gemm 512", lambda: product(512)), ("one op", lambda: chain(1))):
        each = [compiled(root) for _ in range(TURNS)]
        click.echo(f"{name}: {median(each) * 1e3:.1f} ms")
    pairs = [
        (compiled(lambda: chain(LONG)), compiled(lambda: chain(SHORT), LONG // SHORT))
        for _ in range(TURNS)
    ]
    ratio = median(long / short for long, short in pairs)
    click.echo(f"{LONG:,} ops to {LONG // SHORT} times {SHORT:,}: {ratio:.2f} x")
    click.echo(f"{median(long for long, _ in pairs) / LONG * 1e6:.0f} us an op")


if __name__ == "__main__":
    main()
