"""Generate level kernel, textbook: the kernels that everybody writes, many in each program.

`textbook.txt` and `lists.txt` have the kernels, and say how to read them.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial, reduce
from importlib.resources import files
from itertools import count
from math import prod
from typing import Any

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels.group import Generated
from uop.conformance.suite.levels.kernel import scalar
from uop.conformance.suite.levels.nodes import cast, dims
from uop.spec.args import AddrSpace, AxisType, RangeArg, ReduceArg
from uop.spec.dtype import VALUES, DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, index_const

SIZES = (3, 5, 6, 7, 9, 10)
KINDS = (AxisType.LOOP, AxisType.GLOBAL, None)
"""In what a kernel runs; None is a work item."""
NESTS, LISTS = "textbook.txt", "lists.txt"
"""The files of the kernels that are effects in loops, and lists of instructions."""
SPACES = {AddrSpace.LOCAL: (scalar.shared, (9, 8, 7)), AddrSpace.REG: (scalar.register, (8, 9, 7))}
"""How memory that no other kernel has is made, and its slots."""
OPS: dict[type[ast.AST], tuple[Op, Any]] = {
    **{ast.Add: (Op.ADD, operator.add), ast.Sub: (Op.SUB, operator.sub)},
    **{ast.Mult: (Op.MUL, operator.mul), ast.FloorDiv: (Op.IDIV, operator.floordiv)},
    **{ast.Mod: (Op.MOD, operator.mod), ast.Lt: (Op.CMPLT, operator.lt)},
    **{ast.NotEq: (Op.CMPNE, operator.ne), ast.And: (Op.AND, operator.and_)},
    **{ast.Or: (Op.OR, operator.or_), ast.Eq: (Op.CMPEQ, operator.eq)},
    **{ast.BitAnd: (Op.AND, operator.and_), ast.BitOr: (Op.OR, operator.or_)},
    **{ast.BitXor: (Op.XOR, operator.xor), ast.LShift: (Op.SHL, operator.lshift)},
    **{ast.RShift: (Op.SHR, operator.rshift), ast.LtE: (Op.CMPLE, operator.le)},
    **{ast.Gt: (Op.CMPGT, operator.gt), ast.GtE: (Op.CMPGE, operator.ge)},
}
"""The op of each operator, and what it is on two numbers."""
NAMES: dict[str, Any] = {
    **{d.name: d for d in VALUES},
    **{kind.name: lambda size, kind=kind: [(kind, size)] for kind in AxisType},
    **{"sum": Op.ADD, "product": Op.MUL, "max": Op.MAX, "min": Op.MIN},
    **{"cdiv": Op.CDIV, "cmod": Op.CMOD},
    "range": lambda size: [(AxisType.LOOP, size)],
    "flat": lambda *counters: scalar.flat(counters),
    "after": lambda place, r: replace(place, node=UOp(Op.AFTER, place.node, r)),
}


Code = ast.FunctionDef | ast.ClassDef
"""A kernel, or kernels that share memories."""


def textbooks() -> dict[str, list[Code]]:
    """Return the kernels of each textbook."""
    return _read(NESTS) | _read(LISTS)


@cache
def _read(file: str) -> dict[str, list[Code]]:
    kernels: list[Code] = []
    found: dict[str, list[Code]] = {}
    for part in ast.parse((files(__package__) / file).read_text("utf-8")).body:
        if isinstance(part, Code):
            kernels.append(part)
        else:
            kernels = found[ast.unparse(part)[1:].partition(":")[0]] = []
    return found


def written(name: str, dtype: DType, choices: Choices, index: int) -> Generated:
    """Write each kernel of a textbook once."""
    calls, slot = [], 0
    for k, code in enumerate(textbooks()[name]):
        parts = [code] if isinstance(code, ast.FunctionDef) else code.body
        kernels = [
            Kernel(
                dtype,
                choices,
                KINDS[(k + n + index) % len(KINDS)],
                scalar.Listing() if name in _read(LISTS) else None,
            )
            for n, _ in enumerate(parts)
        ]
        if isinstance(code, ast.FunctionDef):
            calls.append(kernels[0].call(code, slot))
            slot += len(kernels[0].buffers)
        else:
            chain = Chain(slot)
            for kernel, part in zip(kernels, parts, strict=True):
                chain.add(kernel, part, code.keywords)
            calls += dict.fromkeys(chain.last.values())
            slot += len(chain.memories)
    return scalar.with_contents(UOp(Op.SINK, *calls), choices)


@dataclass(slots=True, eq=False)
class Place:
    """A memory in a kernel, the last effects on it, and the loops around these."""

    node: UOp
    slot: int
    dtype: DType
    space: AddrSpace = AddrSpace.GLOBAL
    done: tuple[UOp, ...] = ()
    around: tuple[UOp, ...] = ()


@dataclass(frozen=True, slots=True)
class RowOf:
    """The size of a memory that is a row of a matrix."""

    size: int


@dataclass(slots=True)
class Kernel:
    """One kernel under construction: effects in loops, or a list of instructions."""

    dtype: DType
    choices: Choices
    kind: AxisType | None
    listing: scalar.Listing | None
    names: dict[str, Any] = field(init=False)
    numbers: dict[str, Iterator[int]] = field(init=False)
    """The next number of a loop of a fold, another loop, and an axis of groups or items."""
    buffers: list[scalar.Memory | scalar.Number] = field(default_factory=list)
    """The buffer or the number of each PARAM."""
    places: list[Place] = field(default_factory=list)
    effects: list[UOp] = field(default_factory=list)
    used: set[UOp] = field(default_factory=set)
    """The effects that a later one follows."""
    around: tuple[UOp, ...] = ()
    is_now: bool = False
    """Whether what is read gets a name, and so is read where it stands."""

    def __post_init__(self) -> None:
        self.numbers = {"fold": count(10), **{k: count() for k in ("loop", "gidx", "lidx")}}
        self.names = NAMES | {
            **{"size": partial(self.choices.pick, SIZES), "between": self.choices.between},
            "pick": lambda *options: self.choices.pick(options),
            **{"dtype": self.dtype, "signed": self.dtype.is_signed},
            "whole": self.dtype if self.dtype.is_int and self.dtype.bits > 16 else dtypes.int32,
            **{"each": lambda size: [(self.kind, size)], "row": RowOf},
            **{name: partial(self._item, name) for name in ("gidx", "lidx")},
            "variable": self._variable,
            "barrier": self._barrier,
            "declare": self._declare,
        }

    def call(self, code: ast.FunctionDef, first: int) -> UOp:
        """Return the CALL of a kernel, with buffers from this slot on."""
        body = self.body(code)
        arguments = [replace(m, slot=first + m.slot).argument for m in self.buffers]
        call = UOp(Op.CALL, body, *arguments)
        for _ in range(1, self.names.get("runs", 1)):
            arguments.reverse()
            call = UOp(Op.CALL, body, *(UOp(Op.AFTER, a, call) for a in arguments))
        self.names.clear()  # They refer to the kernel.
        return call

    def named(self, name: str, e: ast.expr) -> Any:
        """Give a value a name, and return it."""
        self.names[name] = self._value(e)
        return self.names[name]

    def body(self, code: ast.FunctionDef) -> UOp:
        """Return the body of a kernel, whose memories are PARAMs in the order of their names."""
        parameters, defaults = code.args.args, code.args.defaults
        memories = len(parameters) - len(defaults)
        for p, default in zip(parameters[memories:], defaults, strict=True):
            value = self._value(default)
            if isinstance(value, list):
                value = self._counter(*value[0])
                self.around += (value,)
            self.names[p.arg] = value
        for p in parameters[:memories]:
            form = self._value(p.annotation) if p.annotation else self.names[p.arg]
            self.names[p.arg] = self._memory(form)
        self._run(code.body)
        return self.listing.body if self.listing else UOp(Op.SINK, self._closed(self.around))

    def _variable(self, low: int, high: int) -> UOp:
        """Return a number that is an argument of the kernel."""
        self.buffers.append(number := scalar.Number(len(self.buffers), low, high))
        return number.param

    def _memory(self, form: Any) -> Any:
        """Return a memory by its size, dtype and address space, or as many as a list says."""
        match form:
            case list():
                return [self._memory(f) for f in form]
            case (AddrSpace() as space, inner):
                dtype, size = self._typed(inner)
                make, slots = SPACES[space]
                taken = [p.slot for p in self.places if p.space is not AddrSpace.GLOBAL]
                slot = next(s for s in slots if s not in taken)
                place = Place(make(slot, size, dtype), slot, dtype, space)
            case _:
                slot, (dtype, size) = len(self.buffers), self._typed(form)
                kind = scalar.Row if isinstance(form, RowOf) else scalar.Memory
                buffer = kind(slot, size, dtype)
                place = Place(buffer.param, slot, dtype)
                self.buffers.append(self.buffers[form.slot] if isinstance(form, Place) else buffer)
        self.places.append(place)
        return place

    def _typed(self, form: Any) -> tuple[DType, int]:
        """Return the dtype and the size of a memory; it may be that of another one."""
        if isinstance(form, Place):
            return form.dtype, prod(form.node.shape)
        if isinstance(form, RowOf):
            return self.dtype, form.size
        return form if isinstance(form, tuple) else (self.dtype, form)

    def _run(self, body: Iterable[ast.stmt]) -> None:
        for s in body:
            match s:
                case ast.Assign([target], ast.IfExp(test, value, ast.Constant(v))) if v is ...:
                    self._assign(
                        target, self._value(value), _lifted(self._value(test), dtypes.bool)
                    )
                case ast.Assign([target], e):
                    self.is_now = isinstance(getattr(target, "elts", [target])[0], ast.Name)
                    value = self._value(e)
                    is_index = getattr(value, "dtype", dtypes.index) is dtypes.index
                    if self.listing and self.is_now and not is_index:
                        self.listing.do(value)
                    self.is_now = False
                    self._assign(target, value)
                case ast.AugAssign(target, ast.Add(), e):
                    self._assign(target, self._value(e), op=Op.ATOMICADD)
                case ast.For(target, ast.Tuple(parts), inner, []):
                    for part in parts:
                        self._assign(target, self._value(part))
                        self._run(inner)
                case ast.For(target, axes, inner, []):
                    counter = self._counter(*self._value(axes)[0])
                    self._assign(target, counter)
                    self._loop(counter, inner)
                case ast.If(test, inner, []) if self.listing:
                    with self.listing.where(self._value(test)):
                        self._run(inner)
                case ast.Expr(e):
                    self._value(e)
                case _:
                    raise AssertionError(ast.unparse(s))

    def _assign(self, target: ast.expr, value: Any, *gate: UOp, op: Op = Op.STORE) -> None:
        """Name a value, or store it, or each of several."""
        match target:
            case ast.Name(name):
                self.names[name] = value
            case ast.Tuple(targets):
                for t, v in zip(targets, value, strict=True):
                    self._assign(t, v)
            case ast.Subscript(ast.Call(ast.Name("now"), [e]) | e, i):
                place = self._value(e)
                is_behind = e is not target.value or place.space is AddrSpace.REG
                in_turn = is_behind and not self.listing
                node = self._now(place) if in_turn else place.node
                there = scalar.at(node, _lifted(self._value(i), dtypes.index))
                effect = UOp(op, there, _lifted(value, place.dtype), *gate)
                place.done, place.around = (*(() if in_turn else place.done), effect), self.around
                self.effects.append(effect)
                if self.listing:
                    self.listing.do(effect)

    def _loop(self, counter: UOp, body: Iterable[ast.stmt]) -> None:
        if self.listing:
            with self.listing.each(counter):
                return self._run(body)
        before, around = self.effects, self.around
        self.effects, self.around = [], (*around, counter)
        self._run(body)
        inside, end = {*self.effects}, self._closed((counter,))
        self.effects, self.around = [*before, end], around
        for place in self.places:
            if inside.intersection(place.done):
                place.done, place.around = (end,), around

    def _counter(self, kind: AxisType | None, size: Any, in_fold: bool = False) -> UOp:
        if kind is None:
            return self._item("gidx", size)
        what = "fold" if in_fold and kind is AxisType.LOOP else "loop"
        arg = RangeArg(next(self.numbers[what]), AxisType.REDUCE if what == "fold" else kind)
        return UOp(Op.RANGE, _lifted(size, dtypes.index), arg=arg)

    def _closed(self, loops: Sequence[UOp]) -> UOp:
        """Return the effects so far as one, but for those that others follow, in loops."""
        left = [u for u in self.effects if u not in self.used]
        together = left[0] if len(left) == 1 else UOp(Op.GROUP, *left)
        return scalar.closed(together, [r for r in loops if r.op is Op.RANGE])

    def _declare(self, place: Place, i: Any = None) -> None:
        """List a memory, or where an element of it is, before anything uses it."""
        if self.listing:
            at = place.node if i is None else scalar.at(place.node, _lifted(i, dtypes.index))
            self.listing.do(at)

    def _barrier(self) -> None:
        if self.listing:
            return self.listing.barrier()
        for p in self.places:
            if p.space is AddrSpace.LOCAL and p.done and p.done[0].op is Op.STORE:
                self.used.update(p.done)
                p.done = (UOp(Op.BARRIER, *p.done),)

    def _value(self, e: ast.expr | None) -> Any:
        match e:
            case ast.Name(name):
                return self.names[name]
            case ast.Constant(value):
                return value
            case ast.BinOp(left, op, right) | ast.Compare(left, [op], [right]):
                return _computed(op, self._value(left), self._value(right))
            case ast.Subscript(ast.Name("LOCAL" | "REG" as space), form):
                return (AddrSpace[space], self._value(form))
            case ast.Subscript(base, i):
                return self._element(self._value(base), self._value(i))
            case ast.Call(function, [ast.GeneratorExp(part, [ast.comprehension(target, axes)])]):
                loops = [self._counter(kind, n, True) for kind, n in self._value(axes)]
                self._assign(target, loops if isinstance(target, ast.Tuple) else loops[0])
                arg = ReduceArg(self._value(function))
                return UOp(Op.REDUCE, self._value(part), *loops, arg=arg)
            case ast.Call(function, arguments, []):
                f, values = self._value(function), [self._value(a) for a in arguments]
                if isinstance(f, DType):
                    return cast(values[0], f) if isinstance(values[0], UOp) else const(values[0], f)
                return UOp(f, *_alike(*values)) if isinstance(f, Op) else f(*values)
            case ast.IfExp(test, chosen, other):
                gate, instead = self._value(test), self._value(other)
                if not isinstance(gate, UOp):
                    return self._value(chosen) if gate else instead
                if isinstance(chosen, ast.Subscript) and not isinstance(instead, UOp):
                    place, i = self._value(chosen.value), self._value(chosen.slice)
                    return self._element(place, i, _lifted(instead, place.dtype), gate)
                return UOp(Op.WHERE, gate, *_alike(self._value(chosen), instead))
            case ast.Tuple(parts):
                return tuple(map(self._value, parts))
            case ast.List(parts):
                return [self._value(p) for p in parts]
            case ast.ListComp(part, [ast.comprehension(ast.Name(name), numbers, [])]):
                values = self._value(numbers)
                return [self.names.update({name: v}) or self._value(part) for v in values]
            case ast.BoolOp(op, parts):
                return reduce(partial(_computed, op), map(self._value, parts))
            case ast.UnaryOp(ast.USub(), part):
                return -self._value(part)
            case ast.UnaryOp(ast.Not(), part):
                return UOp(Op.CMPNE, self._value(part), const(True, dtypes.bool))
        raise AssertionError(e and ast.unparse(e))

    def _element(self, base: Any, i: Any, *gate: UOp) -> Any:
        """Return an element of a memory, a lane, one of several memories, or a dtype and a size."""
        match base:
            case Place():
                is_now = self.is_now or base.done or base.space is not AddrSpace.GLOBAL
                there = scalar.at(
                    self._now(base) if is_now else base.node, _lifted(i, dtypes.index)
                )
                u = UOp(Op.LOAD, there, *gate)
                return self.listing.do(u) if self.listing and is_now else u
            case UOp():
                return UOp(Op.INDEX, base, dims(i) if isinstance(i, tuple) else index_const(i))
            case DType():
                return (base, i)
        return base[i]

    def _now(self, place: Place) -> UOp:
        """Return a memory after what was done to it."""
        if self.listing:
            return self.listing.now(place.node)
        self.used.update(place.done)
        in_turn = self.around if place.space is AddrSpace.REG else ()
        after = (*place.done, *(r for r in in_turn if r not in place.around))
        return UOp(Op.AFTER, place.node, *after) if after else place.node

    def _item(self, name: str, size: int, axis: int | None = None) -> UOp:
        return scalar.special(f"{name}{next(self.numbers[name]) if axis is None else axis}", size)


@dataclass(slots=True)
class Chain:
    """Kernels that share memories, each after those before that have one of its memories."""

    first: int
    """The slot of the first memory."""
    sizes: dict[str, Any] = field(default_factory=dict)
    memories: dict[str, scalar.Memory] = field(default_factory=dict)
    last: dict[str, UOp] = field(default_factory=dict)
    """The last CALL with each memory."""

    def add(self, kernel: Kernel, code: ast.stmt, sizes: Iterable[ast.keyword]) -> None:
        """Call a kernel; the first one gives all of them their sizes."""
        assert isinstance(code, ast.FunctionDef)
        if not self.memories:
            self.sizes = {k.arg: kernel.named(k.arg, k.value) for k in sizes if k.arg}
        known = {name: (m.dtype, m.count) for name, m in self.memories.items()}
        kernel.names.update(self.sizes | known)
        body, arguments = kernel.body(code), []
        names = [p.arg for p in code.args.args if isinstance(kernel.names[p.arg], Place)]
        for name, memory in zip(names, kernel.buffers, strict=True):
            assert isinstance(memory, scalar.Memory)
            there = replace(memory, slot=self.first + len(self.memories))
            buffer = self.memories.setdefault(name, there).argument
            last = self.last.get(name)
            arguments.append(UOp(Op.AFTER, buffer, last) if last else buffer)
        self.last.update(dict.fromkeys(names, UOp(Op.CALL, body, *arguments)))
        kernel.names.clear()


def _computed(operator: ast.AST, a: Any, b: Any) -> Any:
    """Return an op on two values, or what it is on two numbers; i - 1 is the sum of i and -1."""
    op, plain = OPS[type(operator)]
    if not isinstance(a, UOp) and not isinstance(b, UOp):
        return plain(a, b)
    if op is Op.SUB and isinstance(b, int) and a.dtype is dtypes.index:
        op, b = Op.ADD, -b
    return UOp(op, *_alike(a, b))


def _alike(*values: Any) -> list[UOp]:
    """Return values of one dtype; numbers have that of the others."""
    dtype = next(v.dtype for v in values if isinstance(v, UOp))
    return [_lifted(v, dtype) for v in values]


def _lifted(value: Any, dtype: DType) -> UOp:
    match value:
        case UOp():
            return value
        case list():
            return UOp(Op.STACK, *(_lifted(v, dtype) for v in value))
        case tuple():
            return scalar.flat(value)
    return index_const(value) if dtype is dtypes.index else const(value, dtype)
