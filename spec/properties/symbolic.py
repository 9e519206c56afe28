"""Symbolic sizes: dimensions computed from variables, and `bind`, which replaces them by numbers.

A variable is a ()-shaped index PARAM with a range. A node with symbolic sizes is valid if it is
valid for the bindings that are tried: all of them if they are few, else the ends of the ranges and
their neighbours. `bind` rebuilds the graph and checks every constraint again (D-074).

The arguments of a call bind the variables of its body: if an argument is a number, the body is
checked for that number.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from weakref import WeakKeyDictionary

from uop.spec.args import Arg, ConstArg, ParamArg, arg_of
from uop.spec.conditions.labels import CONDITIONS
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError, users_line
from uop.spec.graph import (
    CALLS,
    all_sources,
    free_params,
    free_sources,
    kept_with_root,
    outside_bodies,
    over,
    rebuild,
    replaced,
    slot_of,
    toposort,
    without_order,
)
from uop.spec.ops.names import FLOOR_DIVISIONS, Op
from uop.spec.properties.shape import is_fixed, size_of
from uop.spec.registry import DECLARATIONS, Sizes

if TYPE_CHECKING:
    from uop.spec.uop import UOp

SIZE_ARITHMETIC: dict[Op, Callable[..., int]] = {
    Op.ADD: operator.add,
    Op.SUB: operator.sub,
    Op.MUL: operator.mul,
    Op.NEG: operator.neg,
    Op.IDIV: operator.floordiv,
    Op.MOD: operator.mod,
    Op.MAX: max,
}
"""The ops that compute sizes."""

SIZE_OPS = frozenset({*SIZE_ARITHMETIC, Op.CONST, Op.PARAM})
"""The ops in the graph of a size."""

FEW = 8
"""All numbers of a range of up to this size are tried, unless there are too many bindings."""

MOST_TRIALS = 64


Builder: TypeAlias = "type[UOp]"
"""The class of nodes, which passes itself, since it cannot be imported here."""
Binding = tuple[tuple["UOp", "UOp"], ...]
"""Variables and their values, by slot."""

_INSTANCES: WeakKeyDictionary[UOp, dict[Binding, UOp | None]] = WeakKeyDictionary()
"""The instances of each node; None stands for the node itself, which the entry must not hold."""


def is_variable(u: UOp) -> bool:
    return u.op is Op.PARAM and arg_of(u, ParamArg).min is not None


def variables(root: UOp) -> tuple[UOp, ...]:
    """The variables that a node depends on, by slot, except those with a BIND and those of called
    bodies.
    """
    if root._variables is None:
        for u in toposort([root], lambda v: [s for s in free_sources(v) if s._variables is None]):
            found = {v for s in free_sources(u) for v in s._variables or ()}
            known = (u,) if is_variable(u) else tuple(sorted(found, key=slot_of)) if found else ()
            object.__setattr__(u, "_variables", known)
    return root._variables or ()


def variables_of(body: UOp) -> tuple[UOp, ...]:
    """The variables that a body depends on, by slot. Its PARAMs, which calls of it ask for too, say
    of most bodies that there are none.
    """
    return variables(body) if any(map(is_variable, free_params(body))) else ()


def is_size(u: UOp) -> bool:
    """Whether an index is a number or computed from variables, so that it is one size."""
    # Buffers after many CALLs are asked too: the walk starts only where the root may be one.
    if u.dtype is not dtypes.index:
        return False
    nodes = toposort([u], lambda v: () if is_variable(v) else v.src)
    return all(v.op in SIZE_ARITHMETIC or v.op is Op.CONST or is_variable(v) for v in nodes)


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
        said = f"no value for the variables in slots {', '.join(str(slot_of(v)) for v in missing)}"
        raise UnsupportedError(f"symbolic sizes: {said}")
    numbers = tuple((v, _number(build, values[v])) for v in variables(root))
    return _without_numbers(_instance(build, root, numbers))


def with_bound_variables(root: UOp) -> UOp:
    """Replace every BIND of a graph by its value."""
    if not any(u.op is Op.BIND for u in root.toposort()):
        return root

    def bound(u: UOp, src: list[UOp]) -> UOp:
        return src[1] if u.op is Op.BIND else u.with_src(src)

    return rebuild(root, bound)


def trials(of: Iterable[UOp]) -> list[tuple[tuple[UOp, int], ...]]:
    """The values of these variables for which a node is checked."""
    names = list(of)
    ranges = [range(_arg(v).min, _arg(v).max + 1) for v in names]
    for picks in ([_some(r, FEW) for r in ranges], [_some(r, 2) for r in ranges]):
        if prod(map(len, picks)) <= MOST_TRIALS:
            return [tuple(zip(names, values, strict=True)) for values in product(*picks)]
    return [tuple((v, r[end]) for v, r in zip(names, ranges, strict=True)) for end in (0, -1)]


def reads_sizes(op: Op, src: tuple[UOp, ...]) -> bool:
    """Whether a node calls a body with symbolic sizes, or returns an element of one."""
    if op is Op.GETTUPLE and src and src[0].op is Op.TUPLE:
        return not all(is_fixed(s.shape) for s in src[0].src)
    if op is Op.GETTUPLE and src and src[0].op is Op.FUNCTION:
        src = src[0].src
    elif op not in CALLS:
        return False
    return (
        bool(src) and any(map(is_variable, free_params(src[0]))) and bool(_size_variables(src[0]))
    )


Instances = list[tuple[Binding, "UOp"]]
"""A node for each of the bindings that are tried."""


def checked(build: Builder, u: UOp, concrete: UnsupportedError | None) -> Instances:
    """Check a node under construction for some bindings.

    `concrete` is the error of its rules for numbers. It is raised again if the node has no
    variables.
    """
    found = {v for s in free_sources(u) for v in variables(s)}
    if concrete is not None and not found:
        raise concrete
    bindings = trials(sorted(found, key=slot_of))
    if u.op in (Op.INDEX, Op.AFTER, Op.LINEAR, Op.TUPLE, Op.GETTUPLE):
        # Their constraints look at no size: one binding is enough.
        bindings = bindings[-1:]
    tried = [tuple((v, _number(build, value)) for v, value in trial) for trial in bindings]
    if u.op in CALLS:
        _check_call(build, u, tried)
        return []
    return [(binding, _instance(build, u, binding)) for binding in tried]


def sizes_of(build: Builder, u: UOp, instances: Instances) -> Sizes:
    """Derive the shape of a node that was checked, and compare it with those of its instances."""
    sizes: Sizes | None
    try:
        sizes = DECLARATIONS[u.op].shape(cast(Any, u))
    except TypeError:
        # The rule does arithmetic on sizes.
        sizes = None
    if sizes is None:
        operands = ", ".join(map(repr, u.src))
        raise UnsupportedError(f"symbolic sizes: no rule for {u.op.name} of {operands}")
    if u.op is Op.GETTUPLE and u.src[0].op is Op.FUNCTION:
        sizes = tuple(_in_caller(build, u.src[0], size) for size in sizes)
    for binding, same in instances:
        expected = tuple(_value(build, d, binding) for d in sizes)
        if same.shape != expected:
            raise UnsupportedError(f"symbolic sizes: {u.op.name} is {same.shape} for {binding}")
    return sizes


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class _Call:
    """A call as its constraints see it. Its body is one too: of the PARAMs alone."""

    op: Op
    src: tuple[Any, ...]
    arg: Arg | None = None

    def toposort(self) -> list[Any]:
        return toposort([self], all_sources)


def _check_call(build: Builder, u: UOp, bindings: Sequence[Binding]) -> None:
    """Check a call of a body with symbolic sizes: once without numbers, once for each binding.

    Only a part of the body is built again, because its nodes have been checked.
    """
    _obey(cast("_Call", u))
    # What stands before an argument changes no size.
    body, arguments = u.src[0], [without_order(a) for a in u.src[1:]]
    for binding in bindings:
        given = [_instance(build, a, binding) for a in arguments]
        numbers = {v: given[slot_of(v)] for v in _size_variables(body)}
        if any(number.op is not Op.CONST for number in numbers.values()):
            found = ", ".join(map(repr, numbers.values()))
            raise CONDITIONS["SIZES.c1"].lacking(repr(body), f"arguments {found}")
        params = [_instance(build, p, tuple(numbers.items())) for p in free_params(body)]
        _obey(_Call(u.op, (_Call(body.op, tuple(params)), *given), u.arg))


def _obey(call: _Call) -> None:
    for constraint in DECLARATIONS[call.op].constraints:
        found = constraint.broken(cast(Any, call))
        if found is not None:
            raise constraint.error(call.op.name, found, users_line())


@kept_with_root
def _size_variables(body: UOp) -> tuple[UOp, ...]:
    """The variables that sizes in a body are computed from, by slot."""
    nodes = toposort([body], outside_bodies)
    sizes = [size for u in nodes for size in u.shape if not isinstance(size, int)]
    return tuple(sorted({v for size in sizes for v in variables(size)}, key=slot_of))


def _in_caller(build: Builder, call: UOp, size: int | UOp) -> int | UOp:
    """A size in a called body as a size outside."""
    if isinstance(size, int):
        return size
    values = tuple((v, call.src[1 + slot_of(v)]) for v in variables(size))
    return cast("int | UOp", size_of(cast(Any, _instance(build, size, values))))


def _value(build: Builder, dim: int | UOp, binding: Binding) -> int:
    if isinstance(dim, int):
        return dim
    number = _instance(build, dim, binding)
    if number.op is not Op.CONST:
        raise UnsupportedError(f"symbolic sizes: {dim.op.name} in a size")
    return int(arg_of(number, ConstArg).value)


def _instance(build: Builder, root: UOp, binding: Binding) -> UOp:
    """Rebuild a node with values for variables. The root may be still under construction."""
    values = dict(binding)

    def key(u: UOp) -> Binding:
        if u is root:
            return binding
        return tuple((v, values[v]) for v in variables(u) if v in values)

    def is_known(u: UOp) -> bool:
        return key(u) in _INSTANCES.get(u, {})

    def known(u: UOp) -> UOp:
        return _INSTANCES[u][key(u)] or u

    for u in toposort([root], lambda v: [s for s in free_sources(v) if not is_known(s)]):
        if u is not root and is_known(u):
            continue
        free = free_sources(u)
        src = [*u.src[: len(u.src) - len(free)], *map(known, free)]
        if u in values:
            made = values[u]
        elif u.op is Op.BIND and src[1].op is Op.CONST:
            made = src[1]
        else:
            if u.op in CALLS:
                src[0] = _called(build, src[0], src[1:])
            made = _folded(build, build(u.op, *src, arg=u.arg, tag=u.tag))
        if u is root:
            return made
        _INSTANCES.setdefault(u, {})[key(u)] = None if made is u else made
    raise AssertionError("the root comes last")


def _called(build: Builder, body: UOp, arguments: Sequence[UOp]) -> UOp:
    """A body with numbers for the variables whose arguments are numbers."""
    numbers = {
        v: arguments[slot_of(v)]
        for v in variables(body)
        if slot_of(v) < len(arguments) and arguments[slot_of(v)].op is Op.CONST
    }
    return _instance(build, body, tuple(numbers.items()))


def _without_numbers(root: UOp) -> UOp:
    """Leave out the arguments of kernels that are numbers, since their bodies have them."""

    def without_numbers(u: UOp, operands: list[UOp]) -> UOp:
        if u.op is not Op.CALL:
            return over(u, operands)
        body = u.src[0]
        read = {slot_of(p): p for p in free_params(body)}
        left = [k for k, a in enumerate(operands) if k in read or a.op is not Op.CONST]
        moved = {
            read[k]: type(root)(Op.PARAM, *read[k].src, arg=replace(_arg(read[k]), slot=slot))
            for slot, k in enumerate(left)
            if k in read
        }
        return u.with_src([replaced(body, moved), *(operands[k] for k in left)])

    return rebuild(root, without_numbers, outside_bodies)


def _folded(build: Builder, u: UOp) -> UOp:
    """Fold an index op on constants, if the result is an index."""
    is_index = u.op in SIZE_ARITHMETIC and u.dtype is dtypes.index
    if not is_index or any(s.op is not Op.CONST for s in u.src):
        return u
    numbers = [int(arg_of(s, ConstArg).value) for s in u.src]
    if u.op in FLOOR_DIVISIONS and numbers[1] == 0:
        return u
    result = SIZE_ARITHMETIC[u.op](*numbers)
    return _number(build, result) if dtypes.index.min <= result <= dtypes.index.max else u


def _number(build: Builder, value: int) -> UOp:
    return build(Op.CONST, arg=ConstArg.of(value, dtypes.index))


def _arg(u: UOp) -> Any:
    return u.arg


def _some(numbers: range, most: int) -> list[int]:
    """All numbers of a short range; of a long one the ends, their neighbours and the middle."""
    if len(numbers) <= most:
        return list(numbers)
    if most < FEW:
        return [numbers[0], numbers[-1]]
    middle = len(numbers) // 2
    return sorted({numbers[k] for k in (0, 1, 2, middle, -3, -2, -1)})
