"""Symbolic sizes: dimensions computed from variables, and `bind`, which gives these numbers.

A variable is a ()-shaped index PARAM with a range. A node with symbolic sizes is valid if it is
valid for some bindings that are tried: all of them if they are few, else the ends of the ranges
and their neighbours. `bind` rebuilds the graph and checks every constraint again (D-074).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, Protocol, cast
from weakref import WeakKeyDictionary

from uop.spec.args import Arg, ConstArg, ParamArg, arg_of
from uop.spec.conditions.labels import SIZES_C1
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.graph import slot_of
from uop.spec.ops.names import FLOOR_DIVISIONS, RESIZED, Op
from uop.spec.registry import DECLARATIONS
from uop.spec.walk import CALLS, toposort

if TYPE_CHECKING:
    from uop.spec.uop import UOp

SHAPED = {Op.PARAM: 0, Op.BUFFER: 0, **RESIZED}
"""The number of the operand that is the shape of the node."""

EXACT: dict[Op, Callable[..., int]] = {
    Op.ADD: operator.add,
    Op.SUB: operator.sub,
    Op.MUL: operator.mul,
    Op.NEG: operator.neg,
    Op.IDIV: operator.floordiv,
    Op.MOD: operator.mod,
    Op.MAX: max,
}
"""The ops that sizes are computed with."""

FEW = 8
"""A range of up to this many numbers is tried whole, unless there are too many bindings."""

MOST_TRIALS = 64


class Builder(Protocol):
    """Makes a node: the constructor passes itself, since it cannot be imported here."""

    def __call__(
        self, op: Op, *src: UOp, arg: Arg | None = None, tag: str | None = None
    ) -> UOp: ...


Binding = tuple[tuple["UOp", int], ...]
"""Variables and their values, by slot."""

SIZES: WeakKeyDictionary[UOp, tuple[int | UOp, ...]] = WeakKeyDictionary()
"""The sizes of each node with symbolic sizes."""

_VARIABLES: WeakKeyDictionary[UOp, tuple[UOp, ...]] = WeakKeyDictionary()
_INSTANCES: WeakKeyDictionary[UOp, dict[Binding, UOp]] = WeakKeyDictionary()


def is_variable(u: UOp) -> bool:
    return u.op is Op.PARAM and arg_of(u, ParamArg).min is not None


def variables(root: UOp) -> tuple[UOp, ...]:
    """The variables that a node depends on, by slot, without those that a BIND gives a value."""
    for u in toposort([root], lambda v: [s for s in _free(v) if s not in _VARIABLES]):
        if u not in _VARIABLES:
            _without_body_variables(u)
            found = {v for s in _free(u) for v in _VARIABLES[s]}
            _VARIABLES[u] = (u,) if is_variable(u) else tuple(sorted(found, key=slot_of))
    return _VARIABLES[root]


def spelled(size: int | UOp) -> int | str:
    """A size in text: a number, `v3` for the variable of slot 3, `expr` for anything else."""
    if isinstance(size, int):
        return size
    return f"v{slot_of(size)}" if is_variable(size) else "expr"


def bind(root: UOp, values: Mapping[UOp, int]) -> UOp:
    """Replace the variables of a graph by numbers.

    InvalidError for a number outside the range of its variable and for a node that is invalid
    with these numbers; UnsupportedError for a variable without a number.
    """
    build = type(root)
    for variable, value in values.items():
        build(Op.BIND, variable, _number(build, value))
    missing = [v for v in variables(root) if v not in values]
    if missing:
        said = f"no value for the variables in slots {_slots(missing)}"
        raise UnsupportedError(f"symbolic sizes: {said}")
    return _instance(build, root, tuple((v, values[v]) for v in variables(root)))


def with_bound_variables(root: UOp) -> UOp:
    """Replace every BIND of a graph by its value."""
    if not any(u.op is Op.BIND for u in root.toposort()):
        return root
    done: dict[UOp, UOp] = {}
    for u in root.toposort():
        done[u] = done[u.src[1]] if u.op is Op.BIND else u.with_src(done[s] for s in u.src)
    return done[root]


def trials(of: Iterable[UOp]) -> list[Binding]:
    """The bindings of these variables for which a node is checked."""
    names = list(of)
    ranges = [range(_arg(v).min, _arg(v).max + 1) for v in names]
    for picks in ([_some(r, FEW) for r in ranges], [_some(r, 2) for r in ranges]):
        if prod(map(len, picks)) <= MOST_TRIALS:
            return [tuple(zip(names, values, strict=True)) for values in product(*picks)]
    return [tuple((v, r[end]) for v, r in zip(names, ranges, strict=True)) for end in (0, -1)]


def sizes_of(build: Builder, u: UOp, concrete: UnsupportedError) -> tuple[int | UOp, ...]:
    """Derive the sizes of a node under construction, and check it for some bindings.

    `concrete` is the error of the shape rule, which is raised again if the node has no variables.
    """
    found = {v for s in u.src for v in variables(s)}
    _without_body_variables(u)
    if not found:
        raise concrete
    tried = [(b, _instance(build, u, b)) for b in trials(sorted(found, key=slot_of))]
    sizes = _sizes(u)
    for binding, same in tried:
        expected = tuple(d if isinstance(d, int) else _value(build, d, binding) for d in sizes)
        if same.shape != expected:
            raise UnsupportedError(f"symbolic sizes: {u.op.name} is {same.shape} for {binding}")
    return sizes


def _without_body_variables(u: UOp) -> None:
    """SIZES.c1: a body is built before its arguments, so its sizes cannot depend on variables."""
    if u.op in CALLS and _VARIABLES[u.src[0]]:
        raise SIZES_C1.lacking(u.op.name, f"variables in slots {_slots(_VARIABLES[u.src[0]])}")


def _sizes(u: UOp) -> tuple[int | UOp, ...]:
    if u.op in SHAPED:
        return tuple(_size(d) for d in u.src[SHAPED[u.op]].src)
    try:
        sizes = DECLARATIONS[u.op].shape(cast(Any, _Sized(u)))
    except TypeError:
        # The rule does arithmetic on sizes.
        sizes = None
    if sizes is None:
        operands = ", ".join(map(repr, u.src))
        raise UnsupportedError(f"symbolic sizes: no rule for {u.op.name} of {operands}")
    return cast("tuple[int | UOp, ...]", sizes)


class _Sized:
    """A view of a node for shape rules: its shape is its sizes."""

    def __init__(self, u: UOp) -> None:
        self._u = u
        self.op, self.arg = u.op, u.arg

    @property
    def src(self) -> tuple[_Sized, ...]:
        return tuple(_Sized(s) for s in self._u.src)

    @property
    def shape(self) -> tuple[int | UOp, ...]:
        return self._u.sizes

    @property
    def dtype(self) -> object:
        return self._u.dtype


def _size(dim: UOp) -> int | UOp:
    return int(arg_of(dim, ConstArg).value) if dim.op is Op.CONST else dim


def _value(build: Builder, dim: UOp, binding: Binding) -> int:
    number = _instance(build, dim, binding)
    if number.op is not Op.CONST:
        raise UnsupportedError(f"symbolic sizes: {dim.op.name} in a size")
    return int(arg_of(number, ConstArg).value)


def _instance(build: Builder, root: UOp, binding: Binding) -> UOp:
    """Rebuild a node with numbers for its variables. The root may be still under construction."""
    values = dict(binding)

    def key(u: UOp) -> Binding:
        return tuple((v, values[v]) for v in (variables(u) if u is not root else values))

    def known(u: UOp) -> UOp | None:
        return _INSTANCES.get(u, {}).get(key(u))

    for u in toposort([root], lambda v: [s for s in _free(v) if known(s) is None]):
        if u is not root and known(u) is not None:
            continue
        src = [cast("UOp", known(s)) if s in _free(u) else s for s in u.src]
        if u in values:
            made = _number(build, values[u])
        elif u.op is Op.BIND and src[1].op is Op.CONST:
            made = src[1]
        else:
            made = _folded(build, build(u.op, *src, arg=u.arg, tag=u.tag))
        if u is root:
            return made
        _INSTANCES.setdefault(u, {})[key(u)] = made
    raise AssertionError("the root comes last")


def _folded(build: Builder, u: UOp) -> UOp:
    """Fold an index op on constants, if the result is an index."""
    if u.op not in EXACT or u.dtype is not dtypes.index or any(s.op is not Op.CONST for s in u.src):
        return u
    numbers = [int(arg_of(s, ConstArg).value) for s in u.src]
    if u.op in FLOOR_DIVISIONS and numbers[1] == 0:
        return u
    result = EXACT[u.op](*numbers)
    return _number(build, result) if dtypes.index.min <= result <= dtypes.index.max else u


def _number(build: Builder, value: int) -> UOp:
    return build(Op.CONST, arg=ConstArg.of(value, dtypes.index))


def _free(u: UOp) -> tuple[UOp, ...]:
    """The sources of a node; of a BIND without its variable."""
    return u.src[1:] if u.op is Op.BIND else u.src


def _arg(u: UOp) -> Any:
    return u.arg


def _slots(found: Iterable[UOp]) -> str:
    return ", ".join(str(slot_of(v)) for v in found)


def _some(numbers: range, most: int) -> list[int]:
    """All numbers of a short range; of a long one the ends, their neighbours and the middle."""
    if len(numbers) <= most:
        return list(numbers)
    if most < FEW:
        return [numbers[0], numbers[-1]]
    middle = len(numbers) // 2
    return sorted({numbers[k] for k in (0, 1, 2, middle, -3, -2, -1)})
