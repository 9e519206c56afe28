"""Rules as text: `IDIV(IDIV(x, c), d) -> IDIV(x, c * d) if c > 0 and d > 0`.

`rules.py` lists those of each stage, in the order in which they are tried. A pattern with a right
side is a rule: it is compiled once, to a function that matches a node and builds the replacement.
It applies if the replacement has the dtype and the shape of the node, and no place in memory
becomes a value. A left side alone documents a rule that is a function of that name.

`x y z` are nodes of the dtype of the section, `p q` bools, `i` is a place in memory; `c d e` are
constants that are no floats, by their values. A name that occurs twice is one node, or one value. A
right side and a guard may compute with constants.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Any, cast

from uop.compiler.rewriting.rewrite import Rule, RuleSet, rewrites
from uop.compiler.rewriting.rules import RULES
from uop.spec.args import ConstArg, DTypeArg, arg_of
from uop.spec.dtype import VALUES, DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const

NODES, BOOLS, PLACE, CONSTANTS = frozenset("xyz"), frozenset("pq"), "i", frozenset("cde")
SECTIONS: dict[str, DType | None] = {"any": None, "index": dtypes.index}
"""The dtype of the nodes and constants of each section's patterns."""


def int_value(u: UOp) -> int | None:
    """The value of an integer or bool CONST, else None."""
    return int(arg_of(u, ConstArg).value) if u.op is Op.CONST and not u.dtype.is_float else None


def truth(u: UOp) -> bool | None:
    """The value of a bool CONST, else None."""
    value = int_value(u) if u.dtype is dtypes.bool else None
    return None if value is None else bool(value)


@dataclass(frozen=True, slots=True)
class Pattern:
    """One `left -> right if guard` of a rule; the right side and the guard may be missing."""

    rule: str
    text: str
    dtype: DType | None = None
    """The dtype of its nodes and constants; None for any."""
    left: ast.expr = field(init=False, compare=False)
    right: ast.expr | None = field(init=False, compare=False)
    guard: ast.expr | None = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """ValueError for a text that is no pattern."""
        sides, _, guard = self.text.partition(" if ")
        left, _, right = sides.partition("->")
        for name, part in (("left", left), ("right", right), ("guard", guard)):
            try:
                side = ast.parse(part.strip(), mode="eval").body if part else None
            except SyntaxError as error:
                raise self.error(str(error.msg)) from None
            object.__setattr__(self, name, side)
        known = set(self.names)
        unknown = [n for side in (self.right, self.guard) for n in _names(side) if n not in known]
        if unknown:
            raise self.error(f"{unknown[0]} is not on the left side")

    @property
    def op(self) -> Op:
        """The op of the root."""
        return self.op_of(self.left)

    @property
    def names(self) -> tuple[str, ...]:
        """The names on its left side, each once."""
        return tuple(_names(self.left))

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """The dtypes that its nodes may have."""
        if self.dtype is not None:
            return (self.dtype,)
        return (dtypes.bool,) if BOOLS.issuperset(self.names) else tuple(VALUES)

    def constants(self, numbers: Iterable[int]) -> Iterator[dict[str, int]]:
        """Values for its constants, of these numbers, for which the guard holds."""
        names = [name for name in self.names if name in CONSTANTS]
        guard = compile("True" if self.guard is None else ast.unparse(self.guard), "", "eval")
        for values in product(numbers, repeat=len(names)):
            chosen = dict(zip(names, values, strict=True))
            if eval(guard, {}, dict(chosen)):
                yield chosen

    def graph(self, dtype: DType, constants: Mapping[str, int], leaf: Callable[[str], UOp]) -> UOp:
        """The left side on a dtype; `leaf` has the node of each name.

        InvalidError where an op does not take the dtype, ValueError where a constant is not of it.
        """

        def node(e: ast.expr) -> UOp:
            match e:
                case ast.Constant(value=int() as value):
                    return const(value, dtypes.bool if isinstance(value, bool) else dtype)
                case ast.Name(id=name):
                    return const(constants[name], dtype) if name in constants else leaf(name)
            op = self.op_of(e)
            arg = DTypeArg(dtype) if op is Op.CAST else None
            return UOp(op, *map(node, cast(ast.Call, e).args), arg=arg)

        return node(self.left)

    def op_of(self, e: ast.expr) -> Op:
        name = e.func.id if isinstance(e, ast.Call) and isinstance(e.func, ast.Name) else ""
        if name not in Op.__members__:
            raise self.error(f"{ast.unparse(e)} is no op with its operands")
        return Op.__members__[name]

    def error(self, what: str) -> ValueError:
        return ValueError(f"rule {self.rule}: `{self.text}`: {what}")


def _names(e: ast.expr | None) -> Iterator[str]:
    """The names of nodes and constants in a side, each once."""
    walked = [] if e is None else list(ast.walk(e))
    ops = {n.func for n in walked if isinstance(n, ast.Call)}
    found = (n.id for n in walked if isinstance(n, ast.Name) and n not in ops)
    yield from dict.fromkeys(found)


@cache
def patterns(stage: str) -> tuple[Pattern, ...]:
    """The patterns of a stage, in their order."""
    return tuple(
        Pattern(rule, text, SECTIONS[section])
        for section, rules in RULES[stage].items()
        for rule, texts in rules.items()
        for text in texts
    )


def rules_of_table(stage: str, *functions: Rule) -> RuleSet:
    """The rules of a stage in their order. KeyError for a name that is neither pattern nor
    function.

    ValueError for a function that the table does not list.
    """
    by_name = {rule.__name__: rule for rule in functions}
    rules = []
    for name in dict.fromkeys(p.rule for p in patterns(stage)):
        found = [p for p in patterns(stage) if p.rule == name]
        is_pattern = all(p.right is not None for p in found)
        rules.append(rule_of(name, found) if is_pattern else by_name.pop(name))
    if by_name:
        raise ValueError(f"compiler/rewriting/rules.py has no left side of {', '.join(by_name)}")
    return RuleSet(*rules)


def rule_of(name: str, alternatives: list[Pattern]) -> Rule:
    """A rule that tries its patterns in order. ValueError for one that cannot be compiled."""
    by_op: dict[Op, list[Callable[[UOp], UOp | None]]] = {}
    for pattern in alternatives:
        by_op.setdefault(pattern.op, []).append(_Matcher(pattern).compiled())

    @rewrites(*by_op)
    def rule(u: UOp) -> UOp | None:
        for replacement in by_op[u.op]:
            after = replacement(u)
            if (
                after is not None
                and after.dtype is u.dtype
                and after.shape == u.shape
                and after.addrspace is u.addrspace
            ):
                return after
        return None

    rule.__name__ = name
    rule.__doc__ = "\n".join(pattern.text for pattern in alternatives)
    return rule


def _const_like(value: int, like: UOp) -> UOp | None:
    """A constant of the dtype of a node; None if it does not fit."""
    return const(value, like.dtype) if like.dtype.min <= value <= like.dtype.max else None


SCOPE: dict[str, object] = {
    "UOp": UOp,
    "int_value": int_value,
    "const_like": _const_like,
    "BOOL": dtypes.bool,
    **{op.name: op for op in Op},
}
"""The names that the functions of patterns use."""


@dataclass(slots=True)
class _Matcher:
    """Writes the function of a pattern: statements that return None where it does not match."""

    pattern: Pattern
    lines: list[str] = field(default_factory=list)
    bound: dict[str, str] = field(default_factory=dict)
    """The variable that holds the node of each name."""

    def compiled(self) -> Callable[[UOp], UOp | None]:
        pattern = self.pattern
        self._operands(cast(ast.Call, pattern.left), "u")
        if pattern.guard is not None:
            self._require(f"not ({ast.unparse(pattern.guard)})")
        assert pattern.right is not None
        self.lines.append(f"return {self._built(pattern.right)}")
        text = "\n".join(["def replacement(u):", *(f"    {line}" for line in self.lines)])
        scope: dict[str, Any] = {**SCOPE, "DTYPE": pattern.dtype}
        exec(compile(text, f"<rule {pattern.rule}>", "exec"), scope)
        return cast("Callable[[UOp], UOp | None]", scope["replacement"])

    def _operands(self, e: ast.Call, node: str) -> None:
        """Match the operands of a node; those with operands first, which match less often."""
        parts = {f"{node}_{k}": arg for k, arg in enumerate(e.args)}
        self._require(f"len({node}.src) != {len(parts)}")
        self.lines.append(f"{', '.join(parts)}, = {node}.src")
        for part, arg in sorted(parts.items(), key=lambda item: not isinstance(item[1], ast.Call)):
            self._match(arg, part)

    def _match(self, e: ast.expr, node: str) -> None:
        """Match the node in a variable to a part of the left side."""
        match e:
            case ast.Call():
                self._require(f"{node}.op is not {self.pattern.op_of(e).name}")
                self._operands(e, node)
            case ast.Constant(value=bool() as value):
                self._require(f"{node}.dtype is not BOOL or int_value({node}) != {int(value)}")
            case ast.Constant(value=int() as value):
                self._require(f"int_value({node}) != {value}")
            case ast.Name(id=name) if name in CONSTANTS:
                self._constant(name, node)
            case ast.Name(id=name) if name in self.bound:
                self._require(f"{node} is not {self.bound[name]}")
            case ast.Name(id=name) if name in NODES | BOOLS or name == PLACE:
                self._bind(name, node)
            case _:
                raise self.pattern.error(f"{ast.unparse(e)} is no op, name or constant")

    def _constant(self, name: str, node: str) -> None:
        if name in self.bound:
            self._require(f"int_value({node}) != {name}")
        else:
            self._bind(name, node)
            self.lines.append(f"{name} = int_value({node})")
            self._require(f"{name} is None")

    def _bind(self, name: str, node: str) -> None:
        self.bound[name] = node
        if name in BOOLS:
            self._require(f"{node}.dtype is not BOOL")
        elif name != PLACE and self.pattern.dtype is not None:
            self._require(f"{node}.dtype is not DTYPE")

    def _require(self, unless: str) -> None:
        self.lines.append(f"if {unless}: return None")

    def _built(self, e: ast.expr) -> str:
        """An expression that builds a part of the right side."""
        match e:
            case ast.Call(args=args):
                return f"UOp({', '.join([self.pattern.op_of(e).name, *map(self._built, args)])})"
            case ast.Name(id=name):
                return self.bound[name]
            case ast.Constant(value=int() as value):
                return self._made(str(int(value)), "u")
            case ast.BinOp() if names := list(_names(e)):
                if CONSTANTS.issuperset(names):
                    return self._made(ast.unparse(e), self.bound[names[0]])
        raise self.pattern.error(f"{ast.unparse(e)} is no op, name or number")

    def _made(self, value: str, like: str) -> str:
        """A constant of the dtype of another node."""
        name = f"made_{len(self.lines)}"
        self.lines.append(f"{name} = const_like({value}, {like})")
        self._require(f"{name} is None")
        return name
