"""The text of a kernel under construction: statements, names of nodes, open blocks (in render)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from math import prod

from uop.compiler.targets.cstyle import (
    Dialect,
    Operation,
    VectorSpelling,
    c_type,
    fits_int,
    literal,
    spell,
)
from uop.spec.args import AddrSpace, ConstArg
from uop.spec.dtype import dtypes
from uop.spec.errors import DeviceLacksError, PassError
from uop.spec.graph import base_of, slot_of
from uop.spec.kernel.listing import BLOCK_ENDS, BLOCK_STARTS
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import is_variable
from uop.spec.uop import UOp, index_const


def param_name(u: UOp) -> str:
    return f"{'v' if is_variable(u) else 'b'}{slot_of(u)}"


def size_text(u: UOp) -> str:
    """A size as one expression of numbers, variables and arithmetic on them."""
    if isinstance(u.arg, ConstArg):
        return literal(u.arg.dtype, u.arg.bits)
    if is_variable(u):
        return param_name(u)
    args = tuple(f"({size_text(s)})" for s in u.src)
    return spell(Operation(u.op, u.dtype, tuple(s.dtype for s in u.src), args))


def scalar_type(u: UOp) -> str:
    """The C type of a scalar: an index that fits into 32 bits takes no more."""
    return "i32" if u.dtype is dtypes.index and _fits(u) else c_type(u.dtype)


def counter_type(u: UOp) -> str:
    """The C type of a SPECIAL or RANGE, which counts up to its bound."""
    return "i32" if _fits(u.src[0]) else "i64"


def _fits(u: UOp) -> bool:
    return u.min_max is not None and fits_int(int(u.min_max.min), int(u.min_max.max))


def is_plain(u: UOp) -> bool:
    """Whether the operator of C computes this arithmetic on indices exactly."""
    if u.op in (Op.IDIV, Op.MOD):
        x, divisor = (s.min_max for s in u.src)
        return x is not None and divisor is not None and x.min >= 0 and divisor.min > 0
    return all(s.dtype is dtypes.index and _fits(s) for s in (u, *u.src))


PRECEDENCE = {Op.ADD: 1, Op.SUB: 1, Op.MUL: 2, Op.IDIV: 2, Op.MOD: 2}
"""How closely the operators of plain arithmetic bind in C."""


def blocks_of(linear: UOp) -> dict[UOp, int]:
    """The loop or branch around each instruction, by a number."""
    found: dict[UOp, int] = {}
    opened, count = [0], 0
    for u in linear.src:
        if u.op in BLOCK_ENDS:
            opened.pop()
        found[u] = opened[-1]
        if u.op in BLOCK_STARTS:
            count += 1
            opened.append(count)
    return found


def written_inside(linear: UOp, block: Mapping[UOp, int]) -> set[UOp]:
    """The indices that are written inside the expression of their only user, the next instruction
    of the same block.
    """
    users: dict[UOp, list[UOp]] = {}
    for u in linear.src:
        for s in u.src:
            users.setdefault(s, []).append(u)
    return {
        u
        for u, (user, *others) in users.items()
        if not others and block.get(u) == block[user] and _fits_inside(u, user, users)
    }


def _fits_inside(u: UOp, user: UOp, users: dict[UOp, list[UOp]]) -> bool:
    if u.op not in PRECEDENCE or u.dtype is not dtypes.index or u.shape or not is_plain(u):
        return False
    while user.dtype is dtypes.index and user.shape and len(users.get(user, ())) == 1:
        (user,) = users[user]
    if user.op is Op.INDEX:
        return user.addrspace is not None and len(users.get(user, ())) == 1
    if user.op not in (*PRECEDENCE, Op.CMPLT, Op.CMPNE) or user.shape:
        return False
    return user.dtype is dtypes.bool or (is_plain(user) and scalar_type(u) == scalar_type(user))


def nested(text: str, op: Op, around: Op, is_right: bool) -> str:
    """An expression as an operand of another op."""
    own, other = PRECEDENCE[op], PRECEDENCE.get(around, 0)
    is_mixed = own == other == PRECEDENCE[Op.MUL] and op is not around
    return f"({text})" if own < other or is_mixed or (own == other and is_right) else text


BYTES = (4, 8, 16)
"""The sizes of the copies from GLOBAL to LOCAL memory that a device does asynchronously: a work
item starts them, and waits for its own before the barrier after which they are read.
"""


def copies(linear: UOp, block: Mapping[UOp, int]) -> dict[UOp, UOp]:
    """Find copies to LOCAL memory: STOREs, each with the LOAD of its value.

    No other node uses the LOAD. The kernel writes nothing else to that memory, and a BARRIER after
    all copies stands before each of its reads.
    """
    users = Counter(s for u in linear.src for s in u.src)
    written = {base_of(u.src[0]) for u in linear.src if u.declaration.is_write}
    found: dict[UOp, dict[UOp, UOp]] = {}
    others: set[UOp] = set()
    reads: list[UOp] = []
    for u in linear.src:
        takes_location = u.declaration.access or u.op is Op.GETADDR
        if not takes_location or u.src[0].addrspace is not AddrSpace.LOCAL:
            continue
        if u.op is Op.LOAD:
            reads.append(u)
        elif _is_copy(u, written) and users[u.src[1]] == 1 and block[u] == block[u.src[1]]:
            found.setdefault(base_of(u.src[0]), {})[u] = u.src[1]
        else:
            others.add(base_of(u.src[0]))
    for u in reads:
        memory = base_of(u.src[0])
        barriers = (s for s in u.src[0].src[0].src[1:] if s.op is Op.BARRIER)
        if not found.get(memory, {}).keys() <= {v for s in barriers for v in s.toposort()}:
            others.add(memory)
    return {u: v for memory, each in found.items() if memory not in others for u, v in each.items()}


def _is_copy(u: UOp, written: AbstractSet[UOp]) -> bool:
    """Whether it writes what a LOAD reads, without gates, from memory that the kernel leaves."""
    if u.op is not Op.STORE or len(u.src) > 2 or u.src[1].op is not Op.LOAD:
        return False
    value, place = u.src[1], u.src[1].src[0]
    is_plain = len(value.src) == 1 and value.dtype is not dtypes.bool
    is_left = place.addrspace is AddrSpace.GLOBAL and base_of(place) not in written
    size = prod(value.shape) * value.dtype.itemsize
    return is_plain and is_left and place.shape == u.src[0].shape and size in BYTES


@dataclass(slots=True)
class Statements:
    """Lines of C, and the instruction of each."""

    lines: list[str] = field(default_factory=list)
    origins: list[UOp | None] = field(default_factory=list)


class Body:
    """The statements so far, the names of the nodes in scope, and the open blocks."""

    def __init__(self, linear: UOp, dialect: Dialect) -> None:
        self.dialect, self.written = dialect, Statements()
        self.current: UOp | None = None
        self.names: dict[UOp, str] = {}
        self.blocks: list[tuple[UOp, list[UOp]]] = []
        """Each open block: the node that opened it and the nodes named inside."""
        self.count = 0
        block = blocks_of(linear)
        places = [u for u in linear.src if u.op is Op.INDEX and u.addrspace is AddrSpace.REG]
        parts = {base_of(u) for u in places if not _is_whole(u)}
        self.whole = set(map(base_of, places)) - parts
        """The registers that are one variable: a vector or a scalar."""
        self.inside = written_inside(linear, block)
        """The indices that are written inside the expression of their user."""
        self.starts = _starts(linear, block) & self.whole
        """The registers that are declared with their first value."""
        self.copies = copies(linear, block) if dialect.copy else {}
        """The STOREs that the device does asynchronously, each with the LOAD of its value."""

    def write(self, line: str) -> None:
        self.written.lines.append("  " * len(self.blocks) + line)
        self.written.origins.append(self.current)

    def block(self, u: UOp, line: str) -> None:
        """Open a block that the END or ENDIF of `u` closes."""
        self.write(line)
        self.blocks.append((u, []))

    def close(self, u: UOp) -> None:
        """Close the block of `u`; names inside go out of scope."""
        if not self.blocks or self.blocks[-1][0] is not u:
            raise PassError(f"render: END of {u!r}, which is not the innermost open block")
        for named in self.blocks.pop()[1]:
            self.names.pop(named, None)
        self.write("}")

    def name(self, u: UOp, name: str) -> None:
        self.names[u] = name
        if self.blocks:
            self.blocks[-1][1].append(u)

    def of(self, u: UOp) -> str:
        """The expression of an operand: its name, or the literal of a CONST."""
        if isinstance(u.arg, ConstArg):
            return literal(u.arg.dtype, u.arg.bits)
        if u.op is Op.STACK and u not in self.names:
            return self.made(u, list(map(self.of, u.src)))
        if u not in self.names:
            raise PassError(f"render: {u!r} is used before it is computed or outside its loop")
        return self.names[u]

    def operand(self, u: UOp, around: Op, position: int) -> str:
        """The expression of an operand of index arithmetic."""
        text = self.of(u)
        return nested(text, u.op, around, position > 0) if u in self.inside else text

    def variable(self, u: UOp, expression: str) -> None:
        """Declare a variable of the node's dtype: nothing is computed wider than its dtype."""
        name = f"t{self.count}"
        self.count += 1
        self.write(f"{self.type(u)} {name} = {expression};")
        self.name(u, name)

    def type(self, u: UOp) -> str:
        """The C type of a value."""
        return self.vectors.type(u.dtype, u.shape[0]) if u.shape else scalar_type(u)

    def made(self, u: UOp, elements: Sequence[str]) -> str:
        """A vector of these elements. Where the language spreads it, one element stands for all."""
        spelling = self.vectors
        if len(set(elements)) == 1 and spelling.spreads:
            elements = elements[:1]
        return spelling.made.format(self.type(u), ", ".join(elements))

    def register_type(self, u: UOp) -> str:
        """The C type of a register that is one variable."""
        return c_type(u.dtype) if u.shape == (1,) else self.type(u)

    def elements(self, u: UOp) -> list[str]:
        """The elements of a vector, as expressions."""
        if u.op is Op.STACK:
            return [self.of(s) for s in u.src]
        return [self.vectors.element(self.of(u), k) for k in range(u.shape[0])]

    @property
    def vectors(self) -> VectorSpelling:
        """The spelling of vectors; UnsupportedError for a language without them."""
        if self.dialect.vectors is None:
            raise DeviceLacksError(f"{self.dialect.name} has no vectors")
        return self.dialect.vectors


def _is_whole(place: UOp) -> bool:
    """Whether a place in a register is all of it."""
    size = place.src[0].shape
    return place.shape == size or (size == (1,) and place.src[1] is index_const(0))


def _starts(linear: UOp, block: Mapping[UOp, int]) -> set[UOp]:
    """The buffers that a STORE in their own block fills before any other access."""
    first: dict[UOp, UOp] = {}
    for u in linear.src:
        if u.op in (Op.LOAD, Op.STORE, Op.ATOMICADD, Op.GETADDR):
            first.setdefault(base_of(u.src[0]), u)
    return {
        base
        for base, u in first.items()
        if u.op is Op.STORE and len(u.src) == 2 and block.get(base) == block[u]
    }
