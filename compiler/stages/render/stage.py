"""The stage render: the instructions of each kernel become C, one statement per node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from uop.compiler.stages.render.body import counter_type, param_name, size_text
from uop.compiler.stages.render.grid import (
    IN_GROUP,
    OVER_ALL,
    fixed_bound,
    is_grouped,
    name_of,
    specials,
)
from uop.compiler.stages.render.statements import local_memory, local_name, statements
from uop.compiler.stages.stage import Stage
from uop.compiler.targets.cstyle import Dialect, c_type
from uop.compiler.targets.prelude import used_helpers
from uop.compiler.targets.target import Target
from uop.spec.args import BinaryArg, SourceArg
from uop.spec.graph import base_of, calls, kept_with_root, slot_of
from uop.spec.kernel.forms import RENDERED
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import is_size, is_variable
from uop.spec.uop import UOp


@dataclass(frozen=True, slots=True)
class BundledKernel:
    """A kernel with buffers in the arena: the byte offset of each, by PARAM slot."""

    linear: UOp
    offsets: Mapping[int, int]


def render(root: UOp, target: Target) -> UOp:
    """Every LINEAR becomes a PROGRAM with its source; the runtime fills the binary."""
    programs: dict[UOp, UOp] = {}
    for linear, name in kernel_names(root).items():
        source = SourceArg(target.source([target.kernel(linear, name)]))
        parts = UOp(Op.SOURCE, arg=source), UOp(Op.BINARY, arg=BinaryArg(b""))
        programs[linear] = UOp(Op.PROGRAM, linear, *parts)
    return root.substitute(programs)


def kernel_names(root: UOp) -> dict[UOp, str]:
    """The LINEARs of a program with the names of their kernels."""
    found: dict[UOp, UOp | None] = {u: None for u in root.toposort() if u.op is Op.LINEAR}
    for call in calls(root):
        body = call.src[0].src[0] if call.src[0].op is Op.PROGRAM else call.src[0]
        if body in found and found[body] is None and (slots := written_slots(body)):
            found[body] = base_of(call.src[1 + slots[0]])
    return named(found)


def named(written: Mapping[UOp, UOp | None]) -> dict[UOp, str]:
    """The names of kernels, made of their number and the shape of the first buffer that each
    writes.
    """
    found = {}
    for number, (linear, u) in enumerate(written.items()):
        shape = u.shape if u is not None else ()
        sizes = "x".join(str(n) if isinstance(n, int) else "n" for n in shape)
        found[linear] = f"kernel_{number}_{sizes}" if sizes else f"kernel_{number}"
    return found


def render_kernel(linear: UOp, name: str, dialect: Dialect) -> str:
    """Render a kernel as a function of its memory, then of its variables, each by their slots.

    A launch may have more work items than the kernel needs; the others do nothing.
    """
    pointers = [f"{_pointer(u, dialect)} {param_name(u)}" for u in params(linear)]
    sizes = [f"{c_type(u.dtype)} {param_name(u)}" for u in numbers(linear)]
    parameters = ", ".join(pointers + sizes)
    if is_grouped(linear):
        lines = [*_in_group(linear, dialect), *statements(linear, dialect).lines]
    else:
        lines = _inside([_guarded(u, dialect) for u in specials(linear)], linear, dialect)
    return "\n".join([f"{dialect.kernel} {name}({parameters}) {{", *_indented(lines, 1), "}"])


def node_at(line: str, linear: UOp, dialect: Dialect) -> UOp | None:
    """The instruction of a line of a rendered kernel; None for a line of the frame."""
    written = statements(linear, dialect)
    pairs = zip(written.lines, written.origins, strict=True)
    return next((origin for text, origin in pairs if text.strip() == line), None)


def _guarded(u: UOp, dialect: Dialect) -> list[str]:
    """A frame with one work item for each number of a SPECIAL."""
    i = name_of(u)
    number = dialect.global_id[OVER_ALL.index(i)]
    return [f"{counter_type(u)} {i} = {number};", f"if ({i} < {_count(u)}) {{"]


def _count(u: UOp) -> str:
    """The bound of a SPECIAL in C."""
    is_symbolic = u.src[0].op is not Op.CONST and is_size(u.src[0])
    return size_text(u.src[0]) if is_symbolic else str(fixed_bound(u))


def _looped(u: UOp) -> list[str]:
    """A frame with a loop over all numbers of a SPECIAL."""
    i = name_of(u)
    return [f"for ({counter_type(u)} {i} = 0; {i} < {_count(u)}; {i}++) {{"]


def _inside(frames: Sequence[Sequence[str]], linear: UOp, dialect: Dialect) -> list[str]:
    """The statements inside frames; the last line of each frame opens a block."""
    opened = [line for k, frame in enumerate(frames) for line in _indented(frame, k)]
    closed = ["  " * k + "}" for k in reversed(range(len(frames)))]
    return [*opened, *_indented(statements(linear, dialect).lines, len(frames)), *closed]


def _in_group(linear: UOp, dialect: Dialect) -> list[str]:
    """The declarations of a kernel that uses workgroups: its SPECIALs and LOCAL memory."""
    ids = dialect.group_id + dialect.local_id
    number_of = dict(zip(OVER_ALL + IN_GROUP, ids, strict=True))
    numbered = [
        f"{counter_type(u)} {name_of(u)} = {number_of[name_of(u)]};" for u in specials(linear)
    ]
    return numbered + [
        f"{dialect.shared} {c_type(u.dtype)} {local_name(k)}[{max(u.shape[0], 1)}];"
        for k, u in enumerate(local_memory(linear))
    ]


def _indented(lines: Iterable[str], depth: int) -> list[str]:
    return ["  " * depth + line for line in lines]


PART = 32
"""The most kernels in a function of a bundle: an optimizer takes longer for each of many."""


def render_bundle(
    kernels: Sequence[BundledKernel],
    name: str,
    dialect: Dialect,
    grouped: Sequence[BundledKernel] = (),
) -> str:
    """Render many kernels as one, with switches over their number: that builds many times faster.

    The kernel takes the arena and the first number. Each workgroup, of one work item, runs one of
    the kernels, in a loop over its work items. A kernel that uses workgroups cannot be such a loop:
    it is rendered separately, and takes the arena.
    """
    firsts = range(0, len(kernels), PART)
    parts = [_part(kernels, first, name, dialect) for first in firsts]
    source = [
        f"{dialect.kernel} {name}({_arena(dialect)}, i64 first) {{",
        f"  i64 number = first + (i64){dialect.group_id[0]};",
        *(f"  {name}_from_{first}(arena, number);" for first in firsts),
        "}",
    ]
    apart = [_grouped(kernel, grouped_name(name, k), dialect) for k, kernel in enumerate(grouped)]
    sources = [*parts, "\n".join(source)] if parts else []
    return _source([*sources, *apart], dialect, dialect.function_apart)


def _part(kernels: Sequence[BundledKernel], first: int, name: str, dialect: Dialect) -> str:
    """A function that runs the kernel of a number, if it is one of `PART` from a first one on."""
    cases = []
    for number, kernel in enumerate(kernels[first : first + PART], first):
        frames = [_looped(u) for u in specials(kernel.linear)]
        lines = [*_places(kernel, dialect), *_inside(frames, kernel.linear, dialect)]
        cases += [f"    case {number}: {{", *_indented(lines, 3), "      break;", "    }"]
    head = f"{dialect.function_apart} void {name}_from_{first}({_arena(dialect)}, i64 number) {{"
    return "\n".join([head, "  switch (number) {", *cases, "  }", "}"])


def grouped_name(name: str, number: int) -> str:
    """The name of a kernel that uses workgroups in the source of a bundle."""
    return f"{name}_{number}"


def _grouped(kernel: BundledKernel, name: str, dialect: Dialect) -> str:
    declared = [*_in_group(kernel.linear, dialect), *_places(kernel, dialect)]
    lines = declared + statements(kernel.linear, dialect).lines
    opened = f"{dialect.kernel} {name}({_arena(dialect)}) {{"
    return "\n".join([opened, *_indented(lines, 1), "}"])


def _places(kernel: BundledKernel, dialect: Dialect) -> list[str]:
    """The pointers of a kernel into the arena."""
    return [
        f"{p} {param_name(u)} = ({p})(arena + {at});"
        for u in params(kernel.linear)
        for p, at in [(_pointer(u, dialect), kernel.offsets[slot_of(u)])]
    ]


def _arena(dialect: Dialect) -> str:
    return f"{dialect.pointer} u8* arena".lstrip()


def render_source(kernels: Sequence[str], dialect: Dialect) -> str:
    """Join rendered kernels to a source, with the dialect's header and the helpers they call."""
    return _source(kernels, dialect, dialect.function)


def _source(kernels: Sequence[str], dialect: Dialect, function: str) -> str:
    helpers = [helper.text for helper in used_helpers("\n".join(kernels), dialect.helpers)]
    heads = {"FN": function, "APART": dialect.function_apart}
    text = "\n".join(helpers)
    define = [f"#define {name} {head}" for name, head in heads.items() if f"{name} " in text]
    whole = "\n".join([text, *kernels])
    declared = [t for word, t in dialect.declarations.items() if word in whole]
    return "\n\n".join([dialect.header, *declared, *define, *helpers, *kernels]) + "\n"


def params(linear: UOp) -> list[UOp]:
    """The PARAMs of a kernel that are memory, in the order of its arguments, each once."""
    found = {u for u in linear.src if u.op is Op.PARAM and not is_variable(u)}
    return sorted(found, key=slot_of)


@kept_with_root
def numbers(linear: UOp) -> tuple[UOp, ...]:
    """The variables of a kernel: the arguments that follow its memory."""
    found = {u for u in linear.src if u.op is Op.PARAM and is_variable(u)}
    return tuple(sorted(found, key=slot_of))


@kept_with_root
def written_params(linear: UOp) -> frozenset[UOp]:
    """The PARAMs of a kernel that it writes to."""
    bases = (base_of(u.src[0]) for u in linear.src if u.declaration.is_write)
    return frozenset(base for base in bases if base.op is Op.PARAM)


def written_slots(linear: UOp) -> list[int]:
    """The slots of these PARAMs in their order."""
    return sorted(map(slot_of, written_params(linear)))


def _pointer(u: UOp, dialect: Dialect) -> str:
    return f"{dialect.pointer} {c_type(u.dtype)}*".lstrip()


STAGE = Stage("render", lambda u, setting, _: render(u, setting.target), lambda _: RENDERED)
