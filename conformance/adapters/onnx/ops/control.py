"""The rules of control flow that is known when the graph is built: branches, and unrolled loops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from uop.conformance.adapters.onnx.ops.views import axis_of, joined
from uop.conformance.adapters.onnx.rules import Body, Known, constant, rule
from uop.interpreter.numeric.storage import Array
from uop.spec.errors import UnsupportedError
from uop.spec.frontend.tensor import Tensor

MOST_STEPS = 10_000
"""The most steps of a loop that are written out."""


@rule("If", known=(0,))
def branch(condition: Array, *, then_branch: Body, else_branch: Body) -> list[Tensor]:
    return then_branch() if condition.item() else else_branch()


@rule("Loop", known=(0,))
def loop(
    count: Array | None, condition: Tensor | None, *carried: Tensor, body: Body, known: Known
) -> list[Tensor]:
    """Every step is written out; the condition must not depend on inputs."""
    values, rows = [*carried], list[list[Tensor]]()
    limit = MOST_STEPS + 1 if count is None else int(count.item())
    step = 0
    while step < limit and (condition is None or known(condition).item()):
        _require_few(step + 1)
        going = constant(np.asarray(True)) if condition is None else condition
        new, *rest = body(constant(np.asarray(step)), going, *values)
        condition = None if condition is None else new
        values, row = rest[: len(values)], rest[len(values) :]
        rows.append(row)
        step += 1
    if not rows:
        raise UnsupportedError("a loop of no step, whose rows have no known shape")
    return [*values, *_collected(rows)]


@rule("Scan", since=9)
def scan(
    *inputs: Tensor,
    body: Body,
    num_scan_inputs: int,
    scan_input_axes: Sequence[int] | None = None,
    scan_input_directions: Sequence[int] | None = None,
    scan_output_axes: Sequence[int] | None = None,
    scan_output_directions: Sequence[int] | None = None,
) -> list[Tensor]:
    first = len(inputs) - num_scan_inputs
    values, scanned = [*inputs[:first]], inputs[first:]
    axes = scan_input_axes or [0] * num_scan_inputs
    back = scan_input_directions or [0] * num_scan_inputs
    steps = scanned[0].shape[axis_of(axes[0], scanned[0].ndim)]
    rows = list[list[Tensor]]()
    _require_few(steps)
    for step in range(steps):
        parts = [
            x[(*[slice(None)] * axis_of(axis, x.ndim), steps - 1 - step if turned else step)]
            for x, axis, turned in zip(scanned, axes, back, strict=True)
        ]
        results = body(*values, *parts)
        values, row = results[:first], results[first:]
        rows.append(row)
    return [*values, *_collected(rows, scan_output_axes, scan_output_directions)]


@rule("Scan", since=8)
def scan_of_batches(
    lengths: Tensor | None,
    *inputs: Tensor,
    body: Body,
    num_scan_inputs: int,
    directions: Sequence[int] | None = None,
) -> list[Tensor]:
    """Version 8 has a batch first: each of its elements is scanned."""
    if lengths is not None:
        raise UnsupportedError("sequences of several lengths")
    _require_few(inputs[0].shape[0])
    results = [
        scan(
            *(x[n] for x in inputs),
            body=body,
            num_scan_inputs=num_scan_inputs,
            scan_input_directions=directions,
        )
        for n in range(inputs[0].shape[0])
    ]
    return _collected(results)


def _require_few(steps: int) -> None:
    """UnsupportedError for more steps than are written out."""
    if steps > MOST_STEPS:
        raise UnsupportedError(f"expected at most {MOST_STEPS} steps")


def _collected(
    rows: Sequence[Sequence[Tensor]],
    axes: Sequence[int] | None = None,
    turned: Sequence[int] | None = None,
) -> list[Tensor]:
    """The outputs of all steps, each joined along a new axis; in reverse order if `turned`."""
    zeros, result = [0] * len(rows[0]), []
    for k, (axis, back) in enumerate(zip(axes or zeros, turned or zeros, strict=True)):
        parts = [row[k] for row in (reversed(rows) if back else rows)]
        at = axis_of(axis, parts[0].ndim + 1)
        result.append(joined([t.reshape(*t.shape[:at], 1, *t.shape[at:]) for t in parts], at))
    return result


@rule("OptionalHasElement")
def has_element(x: Tensor | None = None) -> Tensor:
    return constant(np.asarray(x is not None))


@rule("OptionalGetElement")
def element(x: Tensor) -> Tensor:
    return x
