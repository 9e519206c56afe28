"""The table of declarations: one OpDef per op, the only place for data about an op.

Rules are typed on the Node protocol. So the declarations do not import UOp, which imports them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Protocol, Self

from uop.spec.args import AddrSpace, Arg, Device
from uop.spec.conditions.labels import Condition
from uop.spec.dtype import DType, Number
from uop.spec.latitude import EXACT, Latitude
from uop.spec.ops.names import Op
from uop.spec.properties import addrspace, axis, device, min_max
from uop.spec.properties.interval import Interval

Shape = tuple[int, ...]
Sizes = tuple[Any, ...]
"""A shape whose dimensions may be symbolic: an int, or a ()-shaped index node. `shape.fixed` gives
the integers.
"""


class Node(Protocol):
    """The fields of a node that a rule may read. Properties are derived in this order."""

    @property
    def op(self) -> Op: ...
    @property
    def src(self) -> tuple[Self, ...]: ...
    @property
    def arg(self) -> Arg | None: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def shape(self) -> Sizes: ...
    @property
    def device(self) -> Device: ...
    @property
    def addrspace(self) -> AddrSpace | None: ...
    @property
    def min_max(self) -> Interval | None: ...
    @property
    def axis(self) -> int | None: ...
    def toposort(self) -> list[Self]: ...


class Build(Protocol):
    """Makes a node, so that decompositions and gradients need not import UOp."""

    def __call__(self, op: Op, *src: Node, arg: Arg | None = None) -> Node: ...


Gradient = Callable[[Build, Node, Node], Sequence[Node | None]]
"""(build, u, gradient of u) -> the gradient of each operand, None for one without gradient."""


@dataclass(frozen=True, slots=True)
class Constraint(Condition):
    """A condition on a node. `broken` describes what breaks it, None if it holds."""

    broken: Callable[[Node], str | None]


@dataclass(frozen=True, slots=True)
class Clause(Condition):
    """A condition on the run of a program, which depends on its inputs.

    Without `OP.u1`, `OP.u2` ... the program has no meaning: UndefinedError. Without `OP.n1` ...
    the interpreter cannot run it: LackingError.
    """


SHAPE_OPERANDS = ("s", "s'", "o", "offset")
"""The names of operands that hold a shape or an offset; they follow all that hold values."""


class Operands:
    """Something with operand names in `src`: `alt?` is optional, `i*` any number of operands."""

    __slots__ = ()
    src: tuple[str, ...]

    @property
    def least(self) -> int:
        """The smallest number of operands."""
        return sum(name[-1] not in "?*" for name in self.src)

    @property
    def most(self) -> int | None:
        """The largest number of operands, None for no limit."""
        return None if any(name[-1] == "*" for name in self.src) else len(self.src)


class AccessKind(Enum):
    """The access of an op to the memory at the location that is its first operand."""

    READ = "reads"
    WRITE = "writes"
    ADD = "adds to"


DIVISOR_0 = "Elements whose divisor is 0."
COUNT = "Elements whose count is outside 0..bits-1."
"""What divisions and shifts leave undefined: by these they are known."""


@dataclass(frozen=True, slots=True)
class OpDef(Operands):
    """One op as data.

    `src` has the spec's names of the operands.
    `undefined` describes the elements without a value, `clauses` are the conditions on a run.
    `decomposition` builds the op from others, `gradient` the gradients of the operands. `cases` is
    the text of a file of cases, for an op without a file in conformance/suite/cases.
    """

    op: Op
    section: str
    doc: str
    src: tuple[str, ...]
    dtype: Callable[[Node], DType]
    shape: Callable[[Node], Shape]
    device: Callable[[Node], Device] = device.first_that_has_one
    addrspace: Callable[[Node], AddrSpace | None] = addrspace.value
    min_max: Callable[[Node], Interval | None] = min_max.range_of_dtype
    axis: Callable[[Node], int | None] = axis.null
    arg: type[Arg] | None = None
    default_arg: Arg | None = None
    dtypes: Sequence[DType] = ()
    constraints: tuple[Constraint, ...] = ()
    latitude: Latitude = EXACT
    undefined: str = ""
    clauses: tuple[Clause, ...] = ()
    decomposition: Callable[[Build, Node], Node | None] | None = None
    gradient: Gradient | None = None
    cases: str = ""
    by_types: bool = False
    """Whether a node on single devices is decided by its arg and by the dtype, shape, device and
    address space of each operand: then the outcome of its rules is cached by these.
    """
    is_view: bool = False
    """Whether it lays the elements of one operand out anew; all but PAD on locations too."""
    is_transcendental: bool = False
    """Whether it is a function that devices approximate, at the cost of several operations."""
    access: AccessKind | None = None
    """Its access to memory; None if it neither reads nor writes an element."""
    identity: Callable[[DType], Number] | None = None
    """The result of a fold by this op over no elements, for each dtype; None if nothing folds by
    it.
    """
    is_write: bool = field(init=False)
    data_operands: int | None = field(init=False)
    """The number of operands that hold values, None for all of them."""

    def __post_init__(self) -> None:
        places = (k for k, name in enumerate(self.src) if name in SHAPE_OPERANDS)
        object.__setattr__(self, "data_operands", next(places, None))
        object.__setattr__(self, "is_write", self.access in (AccessKind.WRITE, AccessKind.ADD))

    @property
    def is_elementwise(self) -> bool:
        return self.section in ("elementwise", "decomposed")

    @property
    def takes_values(self) -> bool:
        """Whether its result depends only on the values of its operands, of some dtypes."""
        return bool(self.dtypes) and self.arg is None

    @property
    def is_counter(self) -> bool:
        """Whether it counts the iterations of a loop, or work items."""
        return self.src == ("bound",)

    @property
    def is_source(self) -> bool:
        return self.section == "source"

    @property
    def is_division(self) -> bool:
        return self.undefined == DIVISOR_0

    @property
    def is_shift(self) -> bool:
        return self.undefined == COUNT

    @property
    def is_partial(self) -> bool:
        """Whether it has no value for some second operands: divisors or counts."""
        return self.is_division or self.is_shift

    @property
    def size_operand(self) -> int | None:
        """The place of the operand that is the shape of a view."""
        return self.src.index("s'") if "s'" in self.src else None


DECLARATIONS: dict[Op, OpDef] = {}


def define(declaration: OpDef) -> OpDef:
    """Enter a declaration; ValueError for a second one of the same op."""
    if declaration.op in DECLARATIONS:
        raise ValueError(f"{declaration.op.name} is declared twice")
    constraints = (*_structural(declaration), *declaration.constraints)
    DECLARATIONS[declaration.op] = complete = replace(declaration, constraints=constraints)
    return complete


def identity_of(op: Op, dtype: DType) -> Number:
    """The result of a fold by an op over no elements; ValueError for an op that nothing
    folds by.
    """
    if (identity := DECLARATIONS[op].identity) is None:
        raise ValueError(f"nothing folds by {op.name}")
    return identity(dtype)


def ops_of(*sections: str) -> frozenset[Op]:
    """The ops that sections of the spec declare."""
    return frozenset(op for op, d in DECLARATIONS.items() if d.section in sections)


def _structural(declaration: OpDef) -> tuple[Constraint, ...]:
    """The constraints of every op: the number of operands and the type of the arg."""
    name, arg = declaration.op.name, declaration.arg
    least, most = declaration.least, declaration.most
    more = " or more" if most is None else "" if least == most else f" to {most}"
    stated = f"src is ({', '.join(declaration.src)}): {least}{more} operands"

    def wrong_count(u: Node) -> str | None:
        n = len(u.src)
        return None if n >= least and (most is None or n <= most) else f"{n} operands"

    def wrong_arg(u: Node) -> str | None:
        fine = u.arg is None if arg is None else isinstance(u.arg, arg)
        return None if fine else f"{u.arg!r}"

    arity = Constraint(f"{name}.arity", stated, wrong_count)
    typed = Constraint(f"{name}.arg", f"arg is {arg.__name__ if arg else 'absent'}", wrong_arg)
    # An op with any number of operands has no arity to break.
    return (typed,) if least == 0 and most is None else (arity, typed)


def labels() -> dict[str, Constraint]:
    """Every constraint by label."""
    return {c.label: c for d in DECLARATIONS.values() for c in d.constraints}
