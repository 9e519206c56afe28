"""The decorator `function`, which captures a Python function on Tensors as a FUNCTION node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, wraps
from itertools import count
from typing import Any, ParamSpec, TypeVar, overload

from uop.spec.args import GetTupleArg, ParamArg
from uop.spec.conditions.labels import invalid
from uop.spec.frontend.calls import carry_calls
from uop.spec.frontend.tensor import Tensor
from uop.spec.frontend.values import STAND_IN, capturing
from uop.spec.graph import PRECOMPILED, leaves, replaced
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, dims

P = ParamSpec("P")
R = TypeVar("R")

_STAND_INS = count()


@overload
def function(python: Callable[P, R]) -> Callable[P, R]: ...


@overload
def function(*, precompiled: bool) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def function(
    python: Callable[..., Any] | None = None, *, precompiled: bool = False
) -> Callable[..., Any]:
    """Capture each call as GETTUPLE(FUNCTION(TUPLE(body), inputs...)).

    The inputs are the Tensors in the arguments, also in lists, tuples and dicts, each once. Tensors
    that the function takes from elsewhere become inputs too, so the body has PARAMs as its leaves.
    The result has the structure of what the function returns.

    `@function(precompiled=True)` captures FUNCTIONs with the tag PRECOMPILED: the compiler makes
    kernels of the body once, and launches them for each call, where it would inline others.
    """
    tag = PRECOMPILED if precompiled else None
    if python is None:
        return partial(_capturing, tag)
    return _capturing(tag, python)


def _capturing(tag: str | None, python: Callable[P, R]) -> Callable[P, R]:
    @wraps(python)
    def captured(*args: P.args, **kwargs: P.kwargs) -> R:
        stand_ins: dict[UOp, UOp] = {}
        replaced = _replaced((args, kwargs), lambda t: _stand_in(t.operand, stand_ins))
        with capturing():
            returned = python(*replaced[0], **replaced[1])
        outputs: list[Tensor] = []
        _replaced(returned, lambda t: _noted(t, outputs))
        if not outputs:
            found = type(returned).__name__
            raise invalid("FUNCTION.result", python.__qualname__, found)
        call = _call([t.operand for t in outputs], stand_ins, tag)
        elements = (Tensor.of(Op.GETTUPLE, call, arg=GetTupleArg(k)) for k in count())
        result: R = _replaced(returned, lambda t: next(elements))
        return result

    return captured


def _call(outputs: list[UOp], stand_ins: dict[UOp, UOp], tag: str | None) -> UOp:
    body = UOp(Op.TUPLE, *outputs)
    own = {placeholder: value for value, placeholder in stand_ins.items()}
    taken = [leaf for leaf in leaves(body) if leaf not in own]
    inputs = [*stand_ins, *taken]
    made = (_param(slot, like) for slot, like in enumerate(inputs))
    params = dict(zip([*stand_ins.values(), *taken], made, strict=True))
    captured = replaced(body, params)
    carry_calls(body, captured)
    return UOp(Op.FUNCTION, captured, *inputs, tag=tag)


def _param(slot: int, like: UOp, tag: str | None = None) -> UOp:
    """A PARAM for a value, on its device if a PARAM there is sharded like the value."""
    device = like.device if not isinstance(like.device, tuple) or like.axis == 0 else None
    return UOp(Op.PARAM, dims(like.shape), arg=ParamArg(slot, like.dtype, device), tag=tag)


def _stand_in(value: UOp, stand_ins: dict[UOp, UOp]) -> Tensor:
    """A distinct node in place of an input: an equal graph that the body computes must not be taken
    for the input.
    """
    if value not in stand_ins:
        stand_ins[value] = _param(next(_STAND_INS), value, tag=STAND_IN)
    return Tensor(stand_ins[value])


def _noted(t: Tensor, outputs: list[Tensor]) -> Tensor:
    outputs.append(t)
    return t


def _replaced(value: Any, new: Callable[[Tensor], Tensor]) -> Any:
    """Replace every Tensor in nested lists, tuples and dicts, in order."""
    if isinstance(value, Tensor):
        return new(value)
    if isinstance(value, list):
        return [_replaced(item, new) for item in value]
    if isinstance(value, tuple):
        items = [_replaced(item, new) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, Mapping):
        return {key: _replaced(item, new) for key, item in value.items()}
    return value
