"""The value of a Tensor: evaluated when it is used, once, and shared with other libraries."""

from __future__ import annotations

import math
import warnings
from abc import ABC
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import count
from operator import index
from typing import Any
from weakref import WeakKeyDictionary

from uop.spec.args import BufferArg, Device, LoadArg, ReplicatedArg
from uop.spec.conditions.labels import invalid
from uop.spec.dtype import DType, Number, Scalar, dtypes
from uop.spec.errors import CaptureWarning, InvalidError, users_line
from uop.spec.frontend import views
from uop.spec.frontend.evaluator import Held, evaluator, installed
from uop.spec.graph import leaves, outside_bodies, over, slot_of, toposort
from uop.spec.ops.names import Op
from uop.spec.registry import Shape
from uop.spec.text.array import Array, nested
from uop.spec.uop import UOp, const, dims

Nested = Number | Sequence["Nested"]
NUMBERS = (bool, int, float, Fraction)

_BOUND: WeakKeyDictionary[UOp, Held] = WeakKeyDictionary()
_SLOTS = count()


def bound(held: Held, device: Device) -> UOp:
    """A new BUFFER, bound to these contents while it lives."""
    arg = BufferArg(next(_SLOTS), held.dtype, device)
    buffer = UOp(Op.BUFFER, dims(held.shape), arg=arg)
    _BOUND[buffer] = held
    return buffer


def contents(root: UOp) -> dict[int, Held]:
    """The contents of the bound BUFFERs of a graph, by slot."""
    return {slot_of(u): _BOUND[u] for u in leaves(root) if u in _BOUND}


def held_by(u: UOp) -> Held | None:
    """The contents of a bound BUFFER; None for any other node."""
    return _BOUND.get(u)


def elements(held: Held) -> list[Scalar]:
    """The values of contents in row-major order."""
    data = held.data if isinstance(held.data, bytes) else evaluator().array(held).tobytes()
    return Array(held.dtype, held.shape, data).values


def held_list(data: Nested, dtype: DType | None) -> Held:
    """The contents of nested lists."""
    shape, flat = _flattened(data)
    chosen = dtype or common_dtype(flat)
    try:
        return Held(chosen, shape, Array.of(flat, chosen, shape).data)
    except ValueError as error:
        raise no_value(chosen, str(error)) from None


def number(value: Number, dtype: DType) -> UOp:
    """A Python number as a constant of a dtype; InvalidError if it is no value of the dtype."""
    try:
        return _constant(value, math.copysign(1, value) if value == 0 else 0, dtype)
    except ValueError as error:
        raise no_value(dtype, str(error)) from None


@lru_cache(maxsize=256, typed=True)
def _constant(value: Number, sign: float, dtype: DType) -> UOp:
    """A constant; its exact encoding takes longer than a node. `sign` separates -0.0 from 0.0."""
    return const(value, dtype)


def common_dtype(values: Sequence[Number]) -> DType:
    """The first of bool, int32 and float32 that holds all of these."""
    if values and all(isinstance(v, bool) for v in values):
        return dtypes.bool
    return dtypes.int32 if values and all(isinstance(v, int) for v in values) else dtypes.float32


def no_value(dtype: DType, found: str) -> InvalidError:
    return invalid("TENSOR.c1", dtype.name, found)


def _flattened(data: Nested) -> tuple[Shape, list[Number]]:
    """The shape of nested lists and their numbers in row-major order."""
    shape: list[int] = []
    level: list[Nested] = [data]
    while not all(isinstance(item, NUMBERS) for item in level):
        sizes = {len(item) if isinstance(item, list | tuple) else None for item in level}
        if None in sizes or len(sizes) != 1:
            raise _no_array(level, len(shape))
        shape.append(sizes.pop() or 0)
        level = [below for item in level if isinstance(item, list | tuple) for below in item]
        if not level:
            break
    return tuple(shape), [item for item in level if isinstance(item, NUMBERS)]


def _no_array(level: list[Nested], depth: int) -> InvalidError:
    found = ", ".join(
        f"a list of {len(item)}" if isinstance(item, list | tuple) else type(item).__name__
        for item in level[:4]
    )
    return invalid("TENSOR.c2", f"depth {depth}", found)


STAND_IN = "input"
"""The tag of the PARAMs that stand for the inputs of a function while it is captured."""


@dataclass(slots=True)
class _Shown:
    graphs: bool = False


_REPR = _Shown()
_CAPTURING: ContextVar[bool] = ContextVar("uop capturing", default=False)
_WARNED: dict[str, dict[Any, Any]] = {}
"""By file the lines that `warnings` has reported."""
_GRAPHS: WeakKeyDictionary[UOp, UOp] = WeakKeyDictionary()
"""The graph that a value was computed from, by the node that holds the value."""


def show_graphs() -> None:
    """From now on the repr of a Tensor evaluates nothing and names the graph: for debuggers."""
    _REPR.graphs = True


def show_values() -> None:
    """From now on the repr of a Tensor has its value, as without `show_graphs`."""
    _REPR.graphs = False


@contextmanager
def capturing() -> Iterator[None]:
    """Capture a function inside the block: evaluating a Tensor there causes a warning."""
    token = _CAPTURING.set(True)
    try:
        yield
    finally:
        _CAPTURING.reset(token)


class Values(ABC):
    """The base class of Tensor with the methods that use its value: each evaluates it, unless it
    has been.
    """

    __slots__ = ()

    uop: UOp
    _held: Held | None
    _operand: UOp | None

    def _value(self) -> Held:
        held = self._held
        if held is None:
            held = held_by(self.uop) or _computed(self.uop)
            object.__setattr__(self, "_held", held)
        return held

    @property
    def operand(self) -> UOp:
        """The node that ops on this Tensor take: `uop`, or after its evaluation a node with its
        value.
        """
        if self._held is None:
            return self.uop
        node = self._operand
        if node is None:
            node = _with_graph(self._held, self.uop)
            object.__setattr__(self, "_operand", node)
        return node

    def numpy(self) -> Any:
        """The value as an array that cannot be written to, without a copy."""
        return evaluator().array(self._value())

    def tolist(self) -> Any:
        """The value as nested lists of Python numbers."""
        held = self._value()
        return nested(elements(held), held.shape, list)

    def item(self) -> Any:
        """The only element."""
        found = elements(self._value()) if self.uop.shape.count(1) == len(self.uop.shape) else []
        if not found:
            raise invalid("TENSOR.c4", "Tensor", _described(self.uop))
        return found[0]

    def __bool__(self) -> bool:
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        if self.uop.dtype.is_float:
            raise invalid("TENSOR.c4", "index", _described(self.uop))
        return index(self.item())

    def __repr__(self) -> str:
        if _REPR.graphs or (self._held is None and not _can_be_computed(self.uop)):
            return f"<Tensor {_described(self.uop)} : {self.uop.op.name}>"
        text = evaluator().text(self._value())
        dtype, shape, device = self.uop.dtype.name, self.uop.shape, self.uop.device
        return f"Tensor({text}, dtype={dtype}, shape={shape}, device={device})"

    def _repr_html_(self) -> str:
        """The drawing of the graph for notebooks; computes no value."""
        return self.uop._repr_html_()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """For numpy."""
        return self.numpy().__array__(dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> Any:
        """For any library that speaks DLPack: shared memory if the library knows read-only memory
        (DLPack 1.0), else a copy.
        """
        return evaluator().lend(self._value(), options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The CPU."""
        return 1, 0


def with_graphs(roots: Iterable[UOp]) -> tuple[dict[UOp, UOp], dict[UOp, UOp]]:
    """The nodes of these graphs, extended by the graphs of evaluated Tensors, and the nodes that
    have their values.
    """
    order = toposort(roots, lambda u: (_GRAPHS[u],) if u in _GRAPHS else outside_bodies(u))
    done: dict[UOp, UOp] = {}
    held: dict[UOp, UOp] = {}
    for u in order:
        if u in _GRAPHS:
            done[u] = done[_GRAPHS[u]]
            held[done[u]] = u
        else:
            done[u] = over(u, [done[s] for s in outside_bodies(u)])
    return done, held


def holding(held: Held, like: UOp) -> UOp:
    """A new node with these contents, on the devices of a node and split there in the same way."""
    device, axis = like.device, like.axis
    if not isinstance(device, tuple) or axis == 0:
        return bound(held, device)
    whole = bound(held, None)
    if axis is None:
        copies = views.expanded(whole, (len(device), *held.shape))
        copied = UOp(Op.LOAD, copies, arg=LoadArg(device))
        return views.dropped(UOp(Op.REPLICATED, copied, arg=ReplicatedArg((0,))), 0)
    rest = [k for k in range(len(held.shape)) if k != axis]
    split = UOp(Op.LOAD, views.permuted(whole, [axis, *rest]), arg=LoadArg(device))
    return views.permuted(split, [*range(1, axis + 1), 0, *range(axis + 1, len(held.shape))])


def _with_graph(held: Held, graph: UOp) -> UOp:
    """The node with the value of a graph, which gradients find by it."""
    if held_by(graph) is held:
        return graph
    node = holding(held, graph)
    _GRAPHS[node] = graph
    return node


def _computed(root: UOp) -> Held:
    if root.dtype is dtypes.void:
        raise invalid("TENSOR.c11", root.op.name, _described(root))
    if any(leaf.op is Op.PARAM and leaf.tag == STAND_IN for leaf in leaves(root)):
        raise invalid("TENSOR.c6", root.op.name, _described(root))
    if _CAPTURING.get():
        _warn()
    return evaluator().evaluate(root, contents(root))


def _warn() -> None:
    place = users_line()
    text = "a Tensor is evaluated while a function is captured: its value becomes data of the graph"
    seen = _WARNED.setdefault(place.path, {})
    warnings.warn_explicit(text, CaptureWarning, place.path, place.line, registry=seen)


def _can_be_computed(root: UOp) -> bool:
    has_inputs = any(leaf.op is Op.PARAM for leaf in leaves(root))
    return installed() is not None and root.dtype is not dtypes.void and not has_inputs


def _described(u: UOp) -> str:
    where = "" if u.device is None else f" @{u.device}"
    return f"{u.dtype.name}{list(u.shape)}{where}"
