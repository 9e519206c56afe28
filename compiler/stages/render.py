"""render: the instructions of each kernel become C, one statement per node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from uop.compiler.stages.grid import (
    IN_GROUP,
    OVER_ALL,
    fixed_bound,
    is_grouped,
    name_of,
    specials,
)
from uop.compiler.targets.cstyle import SPELLED, Dialect, Operation, c_type, literal, spell
from uop.compiler.targets.prelude import used_helpers
from uop.compiler.targets.target import Target
from uop.spec.args import (
    AddrSpace,
    BinaryArg,
    ConstArg,
    CustomArg,
    InsArg,
    ParamArg,
    RangeArg,
    SourceArg,
)
from uop.spec.dtype import dtypes
from uop.spec.errors import PassError, UnsupportedError
from uop.spec.instructions import filled, instruction_named
from uop.spec.ops.names import Op
from uop.spec.uop import UOp


@dataclass(frozen=True, slots=True)
class Placed:
    """A kernel whose buffers lie in one arena: by PARAM slot, the byte at which each begins."""

    linear: UOp
    offsets: tuple[int, ...]


def render(root: UOp, target: Target) -> UOp:
    """Every LINEAR becomes a PROGRAM with its source; the runtime fills the binary."""
    linears = [u for u in root.toposort() if u.op is Op.LINEAR]
    return root.substitute(
        {u: _program(u, f"kernel_{number}", target) for number, u in enumerate(linears)}
    )


def _program(linear: UOp, name: str, target: Target) -> UOp:
    text = render_source([render_kernel(linear, name, target)], target)
    return UOp(
        Op.PROGRAM,
        linear,
        UOp(Op.SOURCE, arg=SourceArg(text)),
        UOp(Op.BINARY, arg=BinaryArg(b"")),
    )


def render_kernel(linear: UOp, name: str, target: Target) -> str:
    """One kernel: a function of its PARAMs in the order of their slots.

    It may be launched with more work items than it needs, those do nothing.
    """
    dialect, body = target.dialect, _body(linear, target)
    parameters = ", ".join(f"{_pointer(u, dialect)} {_param_name(u)}" for u in params(linear))
    return "\n".join([f"{dialect.kernel} {name}({parameters}) {{", *body.closed(), "}"])


def node_at(line: str, linear: UOp, target: Target) -> UOp | None:
    """The instruction that became this line of a rendered kernel; None for what frames them."""
    body = _body(linear, target)
    written = (text.strip() for text in body.lines)
    return next((u for text, u in zip(written, body.origins, strict=True) if text == line), None)


def _body(linear: UOp, target: Target) -> _Body:
    """The statements of a kernel that is a function of its own, its blocks still open."""
    dialect = target.dialect
    body = _Body(dialect, depth=1)
    if is_grouped(linear):
        body.group(linear)
    for u in specials(linear) if not is_grouped(linear) else ():
        i = name_of(u)
        body.write(f"i64 {i} = {dialect.global_id[OVER_ALL.index(i)]};")
        body.open(u, i, f"if ({i} < {fixed_bound(u)}) {{")
    body.instructions(linear)
    return body


def render_batch(
    kernels: Sequence[Placed], name: str, target: Target, grouped: Sequence[Placed] = ()
) -> str:
    """A source in which many kernels are the cases of one: it builds many times faster.

    That one takes the arena and the number of the first case; each group does the work of one
    case, all its work items in a loop, so the launch has groups of one work item. Kernels that
    know workgroups cannot be such a loop: each is a kernel of its own, which takes the arena.
    """
    dialect = target.dialect
    cases = []
    for number, placed in enumerate(kernels):
        body = _Body(dialect, depth=3)
        body.places(placed)
        for u in specials(placed.linear):
            i = name_of(u)
            body.open(u, i, f"for (i64 {i} = 0; {i} < {fixed_bound(u)}; {i}++) {{")
        body.instructions(placed.linear)
        cases += [f"    case {number}: {{", *body.closed(), "      break;", "    }"]
    lines = [
        f"{dialect.kernel} {name}({_arena(dialect)}, i32 first) {{",
        f"  switch (first + (i32){dialect.group_id[0]}) {{",
        *cases,
        "  }",
        "}",
    ]
    apart = [_grouped(placed, grouped_name(name, k), dialect) for k, placed in enumerate(grouped)]
    sources = ["\n".join(lines)] if cases else []
    return _source([*sources, *apart], dialect, dialect.function_apart)


def grouped_name(name: str, number: int) -> str:
    """What a kernel that knows workgroups is called in the source of a batch."""
    return f"{name}_{number}"


def _grouped(placed: Placed, name: str, dialect: Dialect) -> str:
    body = _Body(dialect, depth=1)
    body.group(placed.linear)
    body.places(placed)
    body.instructions(placed.linear)
    return "\n".join([f"{dialect.kernel} {name}({_arena(dialect)}) {{", *body.closed(), "}"])


def _arena(dialect: Dialect) -> str:
    return f"{dialect.pointer} u8* arena".lstrip()


def render_source(kernels: Sequence[str], target: Target) -> str:
    """Rendered kernels as one source, under the dialect's header and the helpers they call."""
    return _source(kernels, target.dialect, target.dialect.function)


def _source(kernels: Sequence[str], dialect: Dialect, function: str) -> str:
    helpers = [helper.text for helper in used_helpers("\n".join(kernels))]
    define = [f"#define FN {function}"] if helpers else []
    return "\n\n".join([dialect.header, *define, *helpers, *kernels]) + "\n"


def params(linear: UOp) -> list[UOp]:
    """The PARAMs of a kernel in the order of its arguments; a block may list one again."""
    found = {u for u in linear.src if u.op is Op.PARAM}
    return sorted(found, key=lambda u: cast(ParamArg, u.arg).slot)


def written_params(linear: UOp) -> set[UOp]:
    """The PARAMs of a kernel that it writes to."""
    return {
        base for u in linear.src if u.op in (Op.STORE, Op.ATOMICADD)
        if (base := _base(u.src[0])).op is Op.PARAM
    }  # fmt: skip


def _base(place: UOp) -> UOp:
    while place.op in (Op.INDEX, Op.AFTER):
        place = place.src[0]
    return place


def _pointer(u: UOp, dialect: Dialect) -> str:
    return f"{dialect.pointer} {c_type(u.dtype)}*".lstrip()


def _param_name(u: UOp) -> str:
    return f"b{cast(ParamArg, u.arg).slot}"


@dataclass(slots=True)
class _Body:
    """The statements of a kernel so far, what each node in scope is called, and the open blocks."""

    dialect: Dialect
    depth: int
    lines: list[str] = field(default_factory=list)
    origins: list[UOp | None] = field(default_factory=list)
    """The instruction that each line was written for."""
    current: UOp | None = None
    names: dict[UOp, str] = field(default_factory=dict)
    blocks: list[tuple[UOp, list[UOp]]] = field(default_factory=list)
    """Each open block: the node that opened it and the nodes named inside."""
    count: int = 0

    def instructions(self, linear: UOp) -> None:
        for u in linear.src:
            if u.op not in RENDER and u.op not in SPELLED:
                raise UnsupportedError(f"render: {u.op.name}")
            self.current = u
            RENDER.get(u.op, _elementwise)(self, u)

    def group(self, linear: UOp) -> None:
        """What a kernel that knows workgroups begins with: its numbers, and what they share."""
        numbers = (*zip(OVER_ALL, self.dialect.group_id, strict=True),
                   *zip(IN_GROUP, self.dialect.local_id, strict=True))  # fmt: skip
        number_of = dict(numbers)
        for u in specials(linear):
            self.write(f"i64 {name_of(u)} = {number_of[name_of(u)]};")
            self.name(u, name_of(u))
        shared = (u for u in linear.src if u.op is Op.BUFFER and u.addrspace is AddrSpace.LOCAL)
        for k, u in enumerate(dict.fromkeys(shared)):
            self.write(f"{self.dialect.shared} {c_type(u.dtype)} s{k}[{max(u.shape[0], 1)}];")
            self.name(u, f"s{k}")

    def places(self, placed: Placed) -> None:
        """The pointers of a kernel into the arena."""
        for u in params(placed.linear):
            pointer = _pointer(u, self.dialect)
            at = placed.offsets[cast(ParamArg, u.arg).slot]
            self.write(f"{pointer} {_param_name(u)} = ({pointer})(arena + {at});")

    def closed(self) -> list[str]:
        """All lines, every open block closed."""
        while self.blocks:
            self.close(self.blocks[-1][0])
        return self.lines

    def write(self, line: str) -> None:
        self.lines.append("  " * (self.depth + len(self.blocks)) + line)
        self.origins.append(self.current)

    def open(self, u: UOp, name: str, line: str) -> None:
        """Open a block with a variable for `u`."""
        self.block(u, line)
        self.name(u, name)

    def block(self, u: UOp, line: str) -> None:
        """Open a block that the END or ENDIF of `u` closes."""
        self.write(line)
        self.blocks.append((u, []))

    def close(self, u: UOp) -> None:
        """Close the block of `u`: what was named inside is out of scope."""
        if not self.blocks or self.blocks[-1][0] is not u:
            raise PassError(f"render: END of {u!r}, which is not the innermost open block")
        for inside in self.blocks.pop()[1]:
            self.names.pop(inside, None)
        self.write("}")

    def name(self, u: UOp, name: str) -> None:
        self.names[u] = name
        if self.blocks:
            self.blocks[-1][1].append(u)

    def of(self, u: UOp) -> str:
        """What an operand is called; a CONST is its literal, wherever it stands."""
        if isinstance(u.arg, ConstArg):
            return literal(u.arg.dtype, u.arg.bits)
        if u not in self.names:
            raise PassError(f"render: {u!r} is used before it is computed or outside its loop")
        return self.names[u]

    def variable(self, u: UOp, expression: str) -> None:
        """A variable of the node's own type: nothing is computed wider than its dtype."""
        name = f"t{self.count}"
        self.count += 1
        self.write(f"{c_type(u.dtype)} {name} = {expression};")
        self.name(u, name)


def _elementwise(body: _Body, u: UOp) -> None:
    of, args = tuple(s.dtype for s in u.src), tuple(body.of(s) for s in u.src)
    related = any(a in b.src for a in u.src for b in u.src if b.dtype is u.dtype)
    body.variable(u, spell(Operation(u.op, u.dtype, of, args, related)))


def _param(body: _Body, u: UOp) -> None:
    body.name(u, _param_name(u))


def _register(body: _Body, u: UOp) -> None:
    if u in body.names:
        return  # LOCAL: it stands at the top, for C allows it nowhere else.
    name = f"r{body.count}"
    body.count += 1
    body.write(f"{c_type(u.dtype)} {name}[{max(u.shape[0], 1)}];")
    body.name(u, name)


def _range(body: _Body, u: UOp) -> None:
    i = f"n{cast(RangeArg, u.arg).id}"
    body.open(u, i, f"for (i64 {i} = 0; {i} < {body.of(u.src[0])}; {i}++) {{")


def _end(body: _Body, u: UOp) -> None:
    body.close(u.src[1])


def _if(body: _Body, u: UOp) -> None:
    body.block(u, f"if ({body.of(u.src[0])}) {{")


def _endif(body: _Body, u: UOp) -> None:
    body.close(u.src[0])


def _barrier(body: _Body, u: UOp) -> None:
    body.write(f"{body.dialect.barrier};")


def _instruction(body: _Body, u: UOp) -> None:
    """INS and CUSTOM: the spelling of the dialect with the names of the operands in it."""
    spelling = (
        instruction_named(u.arg.name).spelled(body.dialect.target)
        if isinstance(u.arg, InsArg)
        else cast(CustomArg, u.arg).fmt
    )
    text = filled(spelling, [body.of(s) for s in u.src])
    if u.dtype is dtypes.void:
        body.write(f"{text};")
    elif u.shape:
        raise UnsupportedError(f"render: {u.op.name} with a result of shape {list(u.shape)}")
    else:
        body.variable(u, f"({c_type(u.dtype)})({text})")


def _index(body: _Body, u: UOp) -> None:
    if len(u.src) != 2:
        raise PassError(f"render: {u!r} has {len(u.src) - 1} indices, expected 1")
    body.name(u, f"{body.of(u.src[0])}[{body.of(u.src[1])}]")


def _load(body: _Body, u: UOp) -> None:
    at = body.of(u.src[0])
    # Memory may hold any byte, a bool is 0 or 1.
    read = f"{at} != 0" if u.dtype is dtypes.bool else at
    if len(u.src) == 3:
        read = (
            f"{body.of(u.src[2])} ? {f'({read})' if read is not at else at} : {body.of(u.src[1])}"
        )
    body.variable(u, read)


def _store(body: _Body, u: UOp) -> None:
    gate = f"if ({body.of(u.src[2])}) " if len(u.src) == 3 else ""
    body.write(f"{gate}{body.of(u.src[0])} = {body.of(u.src[1])};")


def _atomic_add(body: _Body, u: UOp) -> None:
    place, value = u.src[:2]
    memory = body.dialect.shared if place.addrspace is AddrSpace.LOCAL else body.dialect.pointer
    if place.addrspace is AddrSpace.REG:
        # Of one work item alone: nobody divides it.
        total = spell(
            Operation(Op.ADD, value.dtype, (value.dtype,) * 2, (body.of(place), body.of(value)))
        )
        added = f"{body.of(place)} = {total}"
    else:
        spelling = body.dialect.atomic_add.get(value.dtype)
        if spelling is None:
            raise UnsupportedError(
                f"{body.dialect.name} has no atomic addition of {value.dtype.name}"
            )
        added = filled(spelling, [body.of(place), body.of(value), memory])
    gate = f"if ({body.of(u.src[2])}) " if len(u.src) == 3 else ""
    body.write(f"{gate}{added};")


def _after(body: _Body, u: UOp) -> None:
    body.name(u, body.of(u.src[0]))


def _nothing(body: _Body, u: UOp) -> None:
    pass


RENDER: Mapping[Op, Callable[[_Body, UOp], None]] = {
    Op.PARAM: _param,
    Op.BUFFER: _register,
    Op.RANGE: _range,
    Op.END: _end,
    Op.INDEX: _index,
    Op.LOAD: _load,
    Op.STORE: _store,
    Op.AFTER: _after,
    Op.IF: _if,
    Op.ENDIF: _endif,
    Op.BARRIER: _barrier,
    Op.ATOMICADD: _atomic_add,
    Op.INS: _instruction,
    Op.CUSTOM: _instruction,
    # Written where it is used, or before the first instruction, or no statement at all.
    **dict.fromkeys((Op.CONST, Op.SPECIAL, Op.STACK, Op.GROUP, Op.SINK), _nothing),
}
