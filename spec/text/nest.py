"""Writes kernels as nests of loops: each statement in the loops around it, indented as code.

A value is written where it is used, or under a name of its own if several statements use it. The
notation is for people; nothing parses it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from uop.spec import args
from uop.spec.args import arg_of
from uop.spec.dtype import dtypes
from uop.spec.graph import base_of, kernel_calls, slot_of
from uop.spec.kernel.forms import effects_of_loops, open_ranges
from uop.spec.ops.names import Op
from uop.spec.text.codec import arg_text
from uop.spec.text.expression import BINDING, OPERATORS
from uop.spec.uop import UOp

INDENT = "  "
LETTERS = {args.AddrSpace.GLOBAL: "b", args.AddrSpace.LOCAL: "local", args.AddrSpace.REG: "acc"}
"""The start of the name of memory, by its addrspace."""
LONG = 20
"""An expression of so many nodes also gets a name."""


def nests(root: UOp) -> list[str]:
    """The lines of each kernel of a program, in the order in which they run; none without one."""
    lines: list[str] = []
    for number, call in enumerate(kernel_calls(root)):
        bases = [base_of(argument) for argument in call.src[1:]]
        memory = ", ".join(f"b{k} = {base.op.name} {slot_of(base)}" for k, base in enumerate(bases))
        nest = _Nest(call.src[0])
        items = f" for {', '.join(nest.items)}" if nest.items else ""
        lines += [f"kernel {number}{items}: {memory}", *nest.lines]
    return lines


class _Nest:
    """The lines of one kernel, and its work items: `gidx0 in 8`."""

    def __init__(self, kernel: UOp) -> None:
        body = kernel.src[0] if kernel.op is Op.PROGRAM else kernel
        listed = body.src if body.op is Op.LINEAR else body.toposort()[:-1]
        order = [u for u in body.toposort() if u is not body]
        self._inside = open_ranges(order)
        for u, r in effects_of_loops(order).items():
            self._inside[u] |= {r}
        self._shared = _shared(order)
        self._names: dict[UOp, str] = {}
        self._done: set[UOp] = set()
        self._depth = 1
        self.lines: list[str] = []
        work = {arg_of(u, args.SpecialArg).name: u.src[0] for u in order if u.op is Op.SPECIAL}
        self.items = [
            f"{name} in {self._text(bound)}"
            for name, bound in sorted(work.items(), key=lambda item: item[0])
        ]
        if body.op is Op.LINEAR:
            self._list(listed)
        else:
            self._block(listed, frozenset())

    def _list(self, listed: Iterable[UOp]) -> None:
        """The instructions of a LINEAR, whose loops and branches are open until they are closed."""
        for u in listed:
            match u.op:
                case Op.RANGE:
                    self._line(f"for {self._loop(u)}:")
                    self._depth += 1
                case Op.IF:
                    self._line(f"if {self._text(u.src[0])}:")
                    self._depth += 1
                case Op.END | Op.ENDIF:
                    self._depth -= 1
                case _ if self._is_statement(u):
                    self._statement(u)

    def _block(self, among: Iterable[UOp], around: frozenset[UOp]) -> None:
        """The statements of a graph that belong in these loops and in no other."""
        for u in among:
            if u in self._done or not self._is_statement(u) or not self._inside[u] <= around:
                continue
            self._done.add(u)
            if u.op is Op.END:
                self._within(u.src[1:], u.src[0], around)
            else:
                self._statement(u, around)

    def _within(
        self, ranges: Iterable[UOp], body: UOp, around: frozenset[UOp], head: str = ""
    ) -> None:
        self._line(f"{head}for {', '.join(map(self._loop, ranges))}:")
        self._depth += 1
        self._block(body.toposort(), around | frozenset(ranges))
        self._depth -= 1

    def _is_statement(self, u: UOp) -> bool:
        return u in self._shared or (
            (u.op is Op.REDUCE or u.dtype is dtypes.void) and u.op not in (Op.SINK, Op.GROUP)
        )

    def _statement(self, u: UOp, around: frozenset[UOp] = frozenset()) -> None:
        if u.op is Op.STORE:
            gate = f" if {self._text(u.src[2])}" if len(u.src) > 2 else ""
            self._line(f"{self._text(u.src[0])} = {self._text(u.src[1])}{gate}")
            return
        if u.dtype is dtypes.void:
            self._line(self._text(u))
            return
        name = f"t{len(self._names)}"
        if u.op is not Op.REDUCE or not u.src[1:]:
            self._line(f"{name} = {self._text(u)}")
            self._names[u] = name
            return
        self._names[u] = name
        self._within(u.src[1:], u.src[0], around, f"{name} = {arg_of(u, args.ReduceArg).op.name} ")
        if self.lines[-1].endswith(":"):
            self.lines[-1] += f" {self._text(u.src[0])}"
        else:
            self._line(f"{INDENT}{self._text(u.src[0])}")

    def _line(self, text: str) -> None:
        self.lines.append(INDENT * self._depth + text)

    def _loop(self, r: UOp) -> str:
        return (
            f"{self._text(r)} in {self._text(r.src[0])} ({arg_of(r, args.RangeArg).axis_type.name})"
        )

    def _text(self, u: UOp, binding: int = 0) -> str:
        """A value as an expression, in parentheses where an operator around it binds tighter."""
        if u in self._names:
            return self._names[u]
        match u.op:
            case Op.CONST:
                return _constant(arg_of(u, args.ConstArg))
            case Op.RANGE:
                return f"r{arg_of(u, args.RangeArg).id}"
            case Op.SPECIAL:
                return arg_of(u, args.SpecialArg).name
            case Op.PARAM:
                return f"b{slot_of(u)}"
            case Op.BUFFER:
                return f"{LETTERS[arg_of(u, args.BufferArg).addrspace]}{slot_of(u)}"
            case Op.AFTER:
                return self._text(u.src[0])
            case Op.LOAD:
                return self._load(u)
            case Op.INDEX:
                return f"{self._text(u.src[0])}[{', '.join(map(self._text, u.src[1:]))}]"
            case Op.STACK:
                if len(u.src) > 1 and len({*u.src}) == 1:
                    return f"splat({self._text(u.src[0])}, {len(u.src)})"
                return f"[{', '.join(map(self._text, u.src))}]"
            case Op.CAST:
                return f"{u.dtype.name}({self._text(u.src[0])})"
            case Op.NEG:
                return f"-{self._text(u.src[0], len(OPERATORS))}"
            case Op.WHERE:
                p, a, b = map(self._text, u.src)
                return f"({a} if {p} else {b})"
            case op if op in OPERATORS:
                level = BINDING[op]
                left, right = self._text(u.src[0], level), self._text(u.src[1], level + 1)
                text = f"{left} {OPERATORS[op]} {right}"
                return f"({text})" if level < binding else text
        operands = [self._text(s) for s in u.src if s.dtype is not dtypes.void]
        return f"{u.op.name.lower()}({', '.join(operands)}{arg_text(u.arg)})"

    def _load(self, u: UOp) -> str:
        """A place that is read; with a gate what is there, else the alternative."""
        place, *rest = map(self._text, u.src)
        return place if not rest else f"({place} if {rest[1]} else {rest[0]})"


def _shared(order: Sequence[UOp]) -> set[UOp]:
    """The values that several nodes use and that have names: no place, and no short index."""
    uses = Counter(s for u in order for s in u.src)
    size: dict[UOp, int] = {}
    found = set()
    for u in order:
        size[u] = 1 + sum(size[s] for s in (u.src[:1] if u.op is Op.AFTER else u.src))
        # These stand where they are used, also by several nodes; index arithmetic does too.
        is_place = u.op in (Op.CONST, Op.PARAM, Op.BUFFER, Op.INDEX, Op.AFTER, Op.STACK)
        is_read = u.declaration.is_counter or (u.op is Op.LOAD and not u.shape)
        is_short = is_place or is_read or u.dtype is dtypes.index
        is_value = u.dtype is not dtypes.void and u.addrspace is None
        if uses[u] > 1 and is_value and (size[u] > LONG or not is_short):
            found.add(u)
            size[u] = 1
    return found


def _constant(arg: args.ConstArg) -> str:
    """A constant, of a float the shortest decimals that are its value."""
    value = arg.value
    if not arg.dtype.is_float:
        return str(value).lower()
    shown = (f"{float(value):.{digits}g}" for digits in range(1, 18))
    return next((t for t in shown if arg.dtype.encode(float(t)) == arg.bits), str(value))
