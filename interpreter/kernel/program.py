"""Run the kernel programs that the compiler's stages produce, as a host would launch them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from uop.interpreter.footprint import check_values
from uop.interpreter.kernel.buffers import Addresses, Buffer, Buffers
from uop.interpreter.kernel.domain import Arrays
from uop.interpreter.kernel.launch import Kernel, Make
from uop.interpreter.kernel.races import CarriedError
from uop.interpreter.numeric.storage import Array, constant
from uop.interpreter.rules.codegen import custom_function_of
from uop.interpreter.values import Observer, Value
from uop.spec.args import ConstArg, arg_of
from uop.spec.conditions.clauses import lacking, undefined
from uop.spec.graph import outside
from uop.spec.kernel.loops import with_joined_loops
from uop.spec.ops.names import Op
from uop.spec.walk import outside_bodies

if TYPE_CHECKING:
    from uop.spec.uop import UOp

V = TypeVar("V")


def run_program(
    root: UOp,
    inputs: Mapping[UOp, Value],
    observe: Observer | None = None,
    make: Make[Value] = Arrays,
) -> dict[int, Value]:
    """Run the CALLs of a SINK in order; return the contents of every written BUFFER by slot."""
    buffers = Buffers(inputs)
    for body, arguments in calls_of(root, buffers):
        launch(body, arguments, buffers.addresses, make, observe)
    return buffers.written()


def calls_of(root: UOp, buffers: Buffers) -> Iterator[tuple[UOp, list[Buffer]]]:
    """Yield the body and the arguments of each CALL of a SINK, in order."""
    order = outside(root)
    check_values(order, outside_bodies)
    for u in order:
        if u.op is Op.CALL:
            yield u.src[0], [buffers.of_argument(a) for a in u.src[1:]]


def launch(
    body: UOp,
    arguments: list[Buffer],
    addresses: Addresses,
    make: Make[V],
    observe: Callable[[UOp, V], None] | None = None,
) -> None:
    """Run the body of a CALL over its arguments."""
    if body.op is Op.CUSTOMFUNCTION:
        _call_by_name(body, arguments)
        return
    if body.op is Op.SINK:
        body = with_joined_loops(body)
    kernel = Kernel(body, arguments, addresses, make, observe)
    if not kernel.has_iterations:
        kernel.run()
        return
    saved = [(buffer, buffer.saved()) for buffer in kernel.memory.stored]
    try:
        kernel.run()
    except CarriedError:
        for buffer, contents in saved:
            buffer.restore(contents)
        try:
            Kernel(body, arguments, addresses, make, observe, one_after_the_other=True).run()
        except CarriedError as error:
            found = "iterations that no END closes depend on each other"
            raise undefined("RANGE.u1", found, error.access) from None


def _call_by_name(body: UOp, arguments: list[Buffer]) -> None:
    """Run a CUSTOMFUNCTION; its results are unspecified if anything that it reads is."""
    numbers = [_number(m) for m in body.src]
    function = custom_function_of(body, len(arguments))
    results = function.meaning([a.data for a in arguments], *numbers)
    is_open = any(arguments[k].contents.unspecified is not None for k in function.reads)
    for position, data in zip(function.writes, results, strict=True):
        buffer = arguments[position]
        mask = np.ones(buffer.data.shape, np.bool_) if is_open else None
        buffer.restore(Value(np.asarray(data).reshape(-1), None, mask))
        buffer.is_stored_to = True
        if buffer.touched is not None:
            buffer.touched.written[...] = True
    for position in function.reads:
        touched = arguments[position].touched
        if touched is not None:
            touched.read[...] = True


def _number(meta: UOp) -> Array:
    if meta.op is not Op.CONST:
        raise lacking("CUSTOMFUNCTION.n2", meta.op.name, meta)
    return constant(arg_of(meta, ConstArg).bits, meta.dtype)
