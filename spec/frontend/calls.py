"""The calls of composed functions, stored with the node that each returned."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from operator import index
from typing import ParamSpec, Protocol, SupportsFloat, SupportsIndex, TypeGuard, TypeVar
from weakref import WeakKeyDictionary

from uop.spec.args import Device
from uop.spec.dtype import DType
from uop.spec.errors import InvalidError
from uop.spec.graph import outside
from uop.spec.text.literal import Word
from uop.spec.uop import UOp

Attribute = bool | int | float | str | tuple["Attribute", ...] | list["Attribute"] | None
"""A value in a trace: a Word is written bare, another str quoted."""
NEXT_INPUT = Word("tensor")
"""The stand-in for a Tensor in an attribute."""
BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*(:[0-9]+)?")
CONSTANTS: dict[str, Attribute] = {
    **{"None": None, "True": True, "False": False},
    **{name: float(name) for name in ("inf", "-inf", "nan")},
}
"""Words that are values."""
P = ParamSpec("P")


class Valued(Protocol):
    """The part of a Tensor that this module needs."""

    @property
    def operand(self) -> UOp: ...


T = TypeVar("T", bound=Valued)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a composed function: its name in a trace, its Tensors and its other arguments."""

    name: str
    inputs: tuple[UOp, ...]
    attributes: dict[str, Attribute]


_CALLS: WeakKeyDictionary[UOp, Call] = WeakKeyDictionary()


def call_of(u: UOp) -> Call | None:
    """The last call of a composed function that returned this node; of several the outermost.

    Equal nodes are one: after `x.relu()` the node of `x.maximum(0)` has that call too.
    """
    return _CALLS.get(u)


def record(u: UOp, call: Call) -> None:
    """Record a call, unless it returned its own input."""
    if u not in call.inputs:
        _CALLS[u] = call


def carry_calls(old: UOp, new: UOp) -> None:
    """Record the calls of a graph for an equal graph over other leaves."""
    pairs = dict(zip(outside(old), outside(new), strict=True))
    for u, copy in pairs.items():
        if (call := call_of(u)) is not None and copy is not u:
            inputs = tuple([pairs.get(s, s) for s in call.inputs])
            record(copy, Call(call.name, inputs, call.attributes))


def composed(name: str, **fixed: Attribute) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Record each call of a function that makes several nodes; in a trace it is one op.

    Its inputs are its Tensors, its attributes the other arguments and `fixed`. An error inside it
    names the call and its docstring.
    """

    def decorated(python: Callable[P, T]) -> Callable[P, T]:
        parameters = signature(python).parameters.values()
        names = [p.name for p in parameters]
        defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
        does = " ".join((python.__doc__ or "").partition("\n\n")[0].split())

        @wraps(python)
        def called(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                result = python(*args, **kwargs)
            except InvalidError as error:
                bound = {**dict(zip(names, args, strict=False)), **kwargs}
                shown = ", ".join(f"{k}={_shown(v)}" for k, v in bound.items())
                error.reasons.append(f"{python.__name__.strip('_')}({shown}): {does}")
                raise
            bound = {**defaults, **dict(zip(names, args, strict=False)), **kwargs}
            inputs = tuple(_operands(bound.values()))
            rest = {k: attribute(v) for k, v in bound.items() if not _is_tensor(v)}
            record(result.operand, Call(name, inputs, {**rest, **fixed}))
            return result

        return called

    return decorated


def stored(data: object, u: UOp) -> dict[str, Attribute]:
    """The attributes of a storage, with its data as nested lists; None leaves them out."""
    known = {} if data is None else {"data": _lists(data)}
    shape, dtype = attribute(sizes(u)), Word(u.dtype.name)
    return {**known, "shape": shape, "dtype": dtype, "device": device_attribute(u.device)}


def sizes(u: UOp) -> tuple[int, ...]:
    """The shape of a node, with -1 for a symbolic size."""
    return tuple([size if isinstance(size, int) else -1 for size in u.shape])


def device_attribute(device: Device) -> Attribute:
    """A device as an attribute, bare where its name allows."""
    if isinstance(device, tuple):
        return tuple([device_attribute(d) for d in device])
    is_bare = device is not None and BARE.fullmatch(device) and device not in CONSTANTS
    return Word(device) if device is not None and is_bare else device


def attribute(value: object) -> Attribute:
    """A Python argument as an attribute; a Tensor in it is the next of the inputs."""
    if _is_tensor(value) or isinstance(value, UOp):
        return NEXT_INPUT
    match value:
        case DType():
            return Word(value.name)
        case slice():
            return [attribute(v) for v in (value.start, value.stop, value.step)]
        case tuple() | list():
            return tuple(attribute(v) for v in value)
        case bool() | int() | float() | str() | None:
            return value
        case SupportsIndex():
            return index(value)
        case SupportsFloat():
            return float(value)
    return Word("Ellipsis") if value is Ellipsis else str(value)


def _lists(data: object) -> Attribute:
    return [_lists(item) for item in data] if isinstance(data, list) else attribute(data)


def _operands(values: Iterable[object]) -> Iterator[UOp]:
    for value in values:
        if isinstance(value, tuple | list):
            yield from _operands(value)
        elif _is_tensor(value):
            yield value.operand


def _is_tensor(value: object) -> TypeGuard[Valued]:
    return isinstance(getattr(value, "operand", None), UOp)


def _shown(value: object) -> str:
    if _is_tensor(value):
        return f"{value.operand.dtype.name}{list(value.operand.shape)}"
    return str(attribute(value))
