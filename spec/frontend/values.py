"""The value of a Tensor: evaluated when it is used, once, and shared with other libraries."""

from __future__ import annotations

import warnings
from abc import ABC
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from operator import index
from typing import Any
from weakref import WeakKeyDictionary

from uop.spec.args import LoadArg, ReplicatedArg
from uop.spec.conditions.labels import TENSOR_C4, TENSOR_C6, TENSOR_C11
from uop.spec.dtype import dtypes
from uop.spec.errors import CaptureWarning, users_line
from uop.spec.frontend import views
from uop.spec.frontend.data import bound, contents, elements, held_by
from uop.spec.frontend.evaluator import Held, evaluator, installed
from uop.spec.graph import leaves, over
from uop.spec.ops.names import Op
from uop.spec.text.array import nested
from uop.spec.uop import UOp
from uop.spec.walk import outside_bodies, toposort

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
            raise TENSOR_C4.error("Tensor", _described(self.uop), users_line())
        return found[0]

    def __bool__(self) -> bool:
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        if self.uop.dtype.is_float:
            raise TENSOR_C4.error("index", _described(self.uop), users_line())
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
        raise TENSOR_C11.error(root.op.name, _described(root), users_line())
    if any(leaf.op is Op.PARAM and leaf.tag == STAND_IN for leaf in leaves(root)):
        raise TENSOR_C6.error(root.op.name, _described(root), users_line())
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
