"""The flat IR of a trace: functions that StableHLO has as an op become that one op."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from uop.compiler.validity import Validity
from uop.conformance.adapters.stablehlo.flat import Flat, FlatTensor
from uop.conformance.adapters.stablehlo.write import FlatBuilder
from uop.conformance.adapters.walk import BuilderWalk, values_of
from uop.interpreter.frontend import NumpyEvaluator
from uop.spec.args import Device
from uop.spec.dtype import DType
from uop.spec.errors import UnsupportedError
from uop.spec.frontend.evaluator import Held
from uop.spec.frontend.trace import Trace
from uop.spec.frontend.values import contents
from uop.spec.graph import all_replaced, inlined, slots_of
from uop.spec.ops.names import Op
from uop.spec.registry import Shape
from uop.spec.uop import UOp, param

IMAGES: Mapping[str, str] = {
    "Kind.ABS": "abs",
    "Kind.EXP": "exponential",
    "Kind.LOG": "log",
    "Kind.SIGMOID": "logistic",
    "Kind.TANH": "tanh",
}
"""The op of StableHLO for a function of the frontend that is composed of several nodes."""


def flat(trace: Trace) -> Flat:
    """The flat IR of a trace, one op of StableHLO for each flat op; `mlir()` gives the module.

    Data is constant in it, PARAMs are inputs. UnsupportedError for a trace from text, which has no
    nodes, and as for `to_stablehlo`.
    """
    nodes = [t.uop for t in trace.outputs if t.uop is not None]
    if len(nodes) < len(trace.outputs):
        raise UnsupportedError("flat: expected a trace of Tensors, found one from text")
    called = _called(trace, 1 + max(slots_of(UOp(Op.TUPLE, *nodes)), default=-1))
    stands = {call.node: call.stands for call in called}
    replaced = all_replaced([*(call.operand for call in called), *nodes], stands)
    values = values_of(UOp(Op.TUPLE, *replaced))
    held = {slot: data for node in nodes for slot, data in contents(node).items()}
    builder = _TracedBuilder(held, trace.outputs[0].device)
    walk = BuilderWalk(builder)
    for call, operand in zip(called, values, strict=False):
        x = walk.value(operand)
        builder.results[call.slot] = builder.add(call.image, [x], x.dtype, x.shape)
    return builder.program([walk.value(u) for u in values[len(called) :]])


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    """A call that StableHLO has an op for, and the PARAM that stands for its result."""

    node: UOp
    operand: UOp
    image: str
    slot: int

    @property
    def stands(self) -> UOp:
        return param(self.slot, self.node.shape, self.node.dtype)


def _called(trace: Trace, first: int) -> list[_Call]:
    """The calls with an image, in the order of the trace; their slots begin at `first`."""
    found: list[_Call] = []
    for op in trace.ops:
        image = IMAGES.get(str(op.attributes.get("kind")))
        if image is None or op.outputs[0].uop is None or op.inputs[0].uop is None:
            continue
        operand = op.inputs[0].uop
        # An absent element stays absent only where the nodes of the function say so.
        if Validity().split(inlined(operand)).mask is None:
            found.append(_Call(op.outputs[0].uop, operand, image, first + len(found)))
    return found


class _TracedBuilder(FlatBuilder):
    """A PARAM may stand for the result of a call, and a BUFFER for data that is known."""

    def __init__(self, held: Mapping[int, Held], device: Device) -> None:
        super().__init__(device)
        self._held = held
        self.results: dict[int, FlatTensor] = {}
        """The results of calls, by the slots that stand for them."""

    def param(self, slot: int, dtype: DType, shape: Shape) -> FlatTensor:
        if slot in self.results:
            return self.results[slot]
        if slot in self._held:
            return self.const(NumpyEvaluator().array(self._held[slot]), dtype)
        return super().param(slot, dtype, shape)
