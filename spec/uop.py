"""The node of a graph, UOp: checked and interned at construction, so every UOp is valid."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from functools import lru_cache
from operator import attrgetter
from reprlib import repr as _repr
from typing import Any, cast
from weakref import ref

import uop.spec.ops.declared  # noqa: F401 - enters the declarations
from uop.spec.args import AddrSpace, Arg, ConstArg, Device, ParamArg
from uop.spec.conditions.labels import invalid
from uop.spec.dtype import DType, Number, dtypes
from uop.spec.errors import InvalidError, UnsupportedError, users_line
from uop.spec.graph import all_sources, substituted, toposort
from uop.spec.ops.names import Op
from uop.spec.properties import symbolic
from uop.spec.properties.interval import Interval
from uop.spec.properties.shape import is_fixed
from uop.spec.registry import DECLARATIONS, OpDef, Sizes
from uop.spec.text.codec import arg_text

Key = tuple[Op, "tuple[UOp, ...]", Arg | None, str | None]

_NOT_YET: Any = object()
CACHED_ORDER, LARGE_ORDERS = 256, 4
"""The toposort of a graph of up to `CACHED_ORDER` nodes is cached, and those of the last
`LARGE_ORDERS` larger ones. The bounds keep the caches of a chain of nodes linear in its length.
"""


class _Kept(ref["UOp"]):
    """A weak reference to a node, with the key of the node in the intern table."""

    __slots__ = ("key",)
    key: Key


_INTERNED: dict[Key, _Kept] = {}
"""The intern table. A WeakValueDictionary would need four calls for each node, which makes a
compile a twentieth slower.
"""


def _forget(gone: _Kept, interned: dict[Key, _Kept] = _INTERNED) -> None:
    # Another node may have the key by now.
    if interned.get(gone.key) is gone:
        del interned[gone.key]


def _intern(key: Key, u: UOp) -> UOp:
    """Enter a new node; return the equal one instead if another thread has entered it meanwhile."""
    new = _Kept(u, _forget)
    new.key = key
    known = _INTERNED.setdefault(key, new)
    if known is new:
        return u
    made = known()
    if made is None:
        _INTERNED[key] = new
        return u
    return made


class _Fields:
    """What a node holds. Only a node under construction is of this class, whose fields are set."""

    __slots__ = (
        "__weakref__",
        "_axis",
        "_below",
        "_min_max",
        "_variables",
        "addrspace",
        "arg",
        "device",
        "dtype",
        "op",
        "shape",
        "src",
        "tag",
    )

    op: Op
    src: tuple[UOp, ...]
    arg: Arg | None
    tag: str | None
    dtype: DType
    shape: Sizes
    """The sizes; that of a symbolic dimension is its ()-shaped index node."""
    device: Device
    addrspace: AddrSpace | None
    _min_max: Interval | None
    _axis: int | None
    _below: tuple[UOp, ...] | None
    _variables: tuple[UOp, ...] | None


class UOp(_Fields):
    """One immutable node of a graph. Two equal nodes are one object, so equality is identity.

    `UOp(op, *src, arg=None, tag=None)` raises InvalidError with the label of the first constraint
    that is broken, also for an op, operand, arg or tag of a wrong type.
    """

    __slots__ = ()
    __match_args__ = ("op",)

    def __new__(cls, op: Op, *src: UOp, arg: Arg | None = None, tag: str | None = None) -> UOp:
        try:
            declaration = DECLARATIONS[op]
            if arg is None:
                arg = declaration.default_arg
            key = (op, src, arg, tag)
            kept = _INTERNED.get(key)
        except (KeyError, TypeError):
            # An op, operand, arg or tag is hashable: this value is none of them.
            raise _no_node(op, src, arg, tag) from None
        if kept is not None and (known := kept()) is not None:
            return known
        is_symbolic = False
        for s in src:
            if s.__class__ is not UOp:
                if not isinstance(s, UOp):
                    raise _no_node(op, src, arg, tag)
                is_symbolic = True
        if tag is not None and not isinstance(tag, str):
            raise _no_node(op, src, arg, tag)
        return _intern(key, _made(declaration, op, src, arg, tag, is_symbolic))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a UOp is immutable: cannot set {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a UOp is immutable: cannot delete {name}")

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a UOp is not pickled: exchange its text or JSON")

    def __repr__(self) -> str:
        return f"<{self.op.name} : {self.dtype.name}[{_sizes_text(self)}]>"

    def _repr_html_(self) -> str:
        """The drawing that a notebook shows for this graph."""
        from uop.spec.text.draw import html  # imports this module

        return html(self)

    @property
    def declaration(self) -> OpDef:
        return DECLARATIONS[self.op]

    @property
    def data_src(self) -> tuple[UOp, ...]:
        """The operands that hold values: all but shapes and offsets."""
        return self.src[: self.declaration.data_operands]

    @property
    def min_max(self) -> Interval | None:
        """The interval of the elements; None for void. Derived on first use."""
        if self._min_max is _NOT_YET:
            for u in _lacking(self, "_min_max"):
                object.__setattr__(u, "_min_max", u.declaration.min_max(u))
        return self._min_max

    @property
    def axis(self) -> int | None:
        """The sharded dimension, or None. Derived on first use."""
        if self._axis is _NOT_YET:
            for u in _lacking(self, "_axis"):
                object.__setattr__(u, "_axis", u.declaration.axis(u))
        return self._axis

    def toposort(self) -> list[UOp]:
        """Every node of the graph under this one, once each, sources first, this one last."""
        if self._below is not None:
            return [*self._below, self]
        order = toposort([self], all_sources)
        object.__setattr__(self, "_below", tuple(order[:-1]))
        if len(order) > CACHED_ORDER:
            _LARGE.append(ref(self))
            if len(_LARGE) > LARGE_ORDERS and (oldest := _LARGE.popleft()()) not in (None, self):
                object.__setattr__(oldest, "_below", None)
        return order

    def substitute(self, new: Mapping[UOp, UOp]) -> UOp:
        """Replace nodes of this graph. Nodes inside a replacement are not replaced again.

        InvalidError for anything but a mapping of nodes to nodes.
        """
        if not isinstance(new, Mapping):
            raise invalid("NODE.c4", "substitute", _repr(new))
        for pair in new.items():
            if not isinstance(pair[0], UOp) or not isinstance(pair[1], UOp):
                raise invalid("NODE.c4", "substitute", _repr(pair))
        return substituted(self, new)

    def with_src(self, src: Iterable[UOp]) -> UOp:
        """The same op, arg and tag over other sources."""
        sources = tuple(src)
        if sources == self.src:
            return self
        return UOp.__new__(UOp, self.op, *sources, arg=self.arg, tag=self.tag)

    def decompose(self) -> UOp | None:
        """This node as a graph of other ops; None if its declaration has no decomposition."""
        rule = self.declaration.decomposition
        return None if rule is None else cast("UOp | None", rule(UOp, self))  # type: ignore[arg-type]


_LARGE: deque[ref[UOp]] = deque()
"""The nodes of large graphs whose toposort is cached, the oldest first."""


class _Symbolic(UOp):
    """A node with a symbolic dimension. Its class says so, without a look at its shape."""

    __slots__ = ()


def _made(
    declaration: OpDef,
    op: Op,
    src: tuple[UOp, ...],
    arg: Arg | None,
    tag: str | None,
    is_symbolic: bool,
) -> UOp:
    """Make a new node: check its constraints and derive its properties."""
    u = cast(UOp, object.__new__(_Fields))
    u.op, u.src, u.arg, u.tag = op, src, arg, tag
    u._min_max = u._axis = _NOT_YET
    u._below = u._variables = None
    if declaration.by_types and not is_symbolic:
        types: list[object] = [op, arg]
        for s in src:
            if s.device.__class__ is tuple:
                break
            types += (s.dtype, s.shape, s.device, s.addrspace)
        else:
            u.dtype, u.shape, u.device, u.addrspace = _outcome(u, declaration, tuple(types))
            u.__class__ = UOp
            return u
    error = None
    try:
        is_symbolic = is_symbolic or symbolic.reads_sizes(op, src)
        if not is_symbolic:
            u.dtype = _checked(u, declaration)
            u.shape = declaration.shape(u)
    except UnsupportedError as raised:
        error, is_symbolic = raised, True
    if is_symbolic:
        instances = symbolic.checked(UOp, u, error)
        u.dtype = declaration.dtype(u)
        u.shape = symbolic.sizes_of(UOp, u, instances)
    u.device = declaration.device(u)
    u.addrspace = declaration.addrspace(u)
    u.__class__ = _Symbolic if is_symbolic and not is_fixed(u.shape) else UOp
    return u


def _checked(u: UOp, declaration: OpDef) -> DType:
    """Check the constraints of a node; return its dtype."""
    for constraint in declaration.constraints:
        found = constraint.broken(u)
        if found is not None:
            raise constraint.error(described(u), found, users_line())
    return declaration.dtype(u)


Outcome = tuple[DType, Sizes, Device, AddrSpace | None]

_OUTCOMES: dict[tuple[object, ...], Outcome] = {}
"""The properties of nodes of ops `by_types`, by op, arg and the types of their operands. Most nodes
of kernels are such.
"""
MOST_OUTCOMES = 1 << 14


def _outcome(u: UOp, declaration: OpDef, types: tuple[object, ...]) -> Outcome:
    """Check a node that its types decide, or look up that nodes of these types are right."""
    known = _OUTCOMES.get(types)
    if known is None:
        if len(_OUTCOMES) >= MOST_OUTCOMES:
            _OUTCOMES.clear()
        u.dtype = _checked(u, declaration)
        shape, device = declaration.shape(u), declaration.device(u)
        known = u.dtype, shape, device, declaration.addrspace(u)
        _OUTCOMES[types] = known
    return known


def _lacking(u: UOp, field: str) -> list[UOp]:
    """The nodes under this one, and itself, whose derived field is not known, sources first."""
    known = attrgetter(field)
    if all(known(s) is not _NOT_YET for s in u.src):
        return [u]
    return toposort([u], lambda v: [s for s in v.src if known(s) is _NOT_YET])


def _sizes_text(u: UOp) -> str:
    return ", ".join(str(symbolic.spelled(size)) for size in u.shape)


def described(u: UOp) -> str:
    """The text of a node in error messages: op, operands with dtype and shape, arg."""
    operands = ", ".join(
        f"{s.op.name}:{s.dtype.name}[{_sizes_text(s)}]" if isinstance(s, UOp) else repr(s)
        for s in u.src
    )
    try:
        arg = arg_text(u.arg)
    except ValueError:
        # Bits that are no value of the dtype of a CONST have no text.
        arg = f" {u.arg}"
    return f"{u.op.name}({operands}){arg}"


def _no_node(op: Any, src: tuple[Any, ...], arg: Any, tag: Any) -> InvalidError:
    """The error for a constructor call with an op, operand, arg or tag of a wrong type."""
    declaration = DECLARATIONS.get(op) if isinstance(op, Op) else None
    if declaration is None:
        return invalid("NODE.c1", "UOp", _repr(op))
    strange = [s for s in src if not isinstance(s, UOp)]
    if strange:
        return invalid("NODE.c2", op.name, _repr(strange[0]))
    if tag is not None and not isinstance(tag, str):
        return invalid("NODE.c3", op.name, _repr(tag))
    typed = next(c for c in declaration.constraints if c.label == f"{op.name}.arg")
    return typed.error(op.name, _repr(arg), users_line())


def checked_root(root: object) -> UOp:
    """Return the root if it is a UOp; InvalidError for anything else."""
    if isinstance(root, UOp):
        return root
    raise invalid("NODE.c5", "program", _repr(root))


def const(value: Number, dtype: DType) -> UOp:
    """A CONST of shape (). A float value is rounded once into the dtype.

    ValueError for an integer outside the dtype, InvalidError for a value that is no number and for
    a dtype that is no DType.
    """
    return UOp(Op.CONST, arg=ConstArg.of(value, dtype))


@lru_cache(1 << 10, typed=True)
def index_const(value: int) -> UOp:
    """A ()-shaped index constant."""
    return const(value, dtypes.index)


def dims(values: Iterable[int | UOp]) -> UOp:
    """A shape or offset operand: a STACK of ()-shaped index constants, and of the nodes of symbolic
    sizes.
    """
    if not isinstance(values, Iterable):
        raise invalid("SHAPE.c1", "dims", _repr(values))
    return UOp(Op.STACK, *(v if isinstance(v, UOp) else index_const(v) for v in values))


def param(slot: int, shape: Iterable[int | UOp], dtype: DType, device: Device = None) -> UOp:
    """A PARAM of this shape and dtype; a symbolic size is a ()-shaped index node."""
    return UOp(Op.PARAM, dims(shape), arg=ParamArg(slot, dtype, device))


def variable(slot: int, low: int, high: int) -> UOp:
    """A ()-shaped index PARAM from `low` to `high`, which sizes may be computed from."""
    return UOp(Op.PARAM, dims(()), arg=ParamArg(slot, dtypes.index, min=low, max=high))
