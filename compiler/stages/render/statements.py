"""Writes the instructions of a kernel as C statements, one per node (in render)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import cast

from uop.compiler.stages.render.body import Body, Statements, counter_type, is_plain, param_name
from uop.compiler.stages.render.grid import name_of
from uop.compiler.stages.select.launch import IN_WARP
from uop.compiler.targets.cstyle import (
    SPELLINGS,
    Dialect,
    Operation,
    VectorPlace,
    c_type,
    spell,
    storage,
)
from uop.spec.args import AddrSpace, ConstArg, CustomArg, InsArg, RangeArg, WmmaArg, arg_of
from uop.spec.dtype import dtypes
from uop.spec.errors import DeviceLacksError, PassError, UnsupportedError
from uop.spec.graph import base_of, kept_with_root
from uop.spec.kernel.instructions import check_operands, filled, instruction_named
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import is_size
from uop.spec.uop import UOp


def statements(linear: UOp, dialect: Dialect) -> Statements:
    """The statements of a kernel, without the declarations of its SPECIALs and LOCAL memory."""
    written = _written(linear)
    if dialect not in written:
        body = Body(linear, dialect)
        for u in linear.src:
            if u.op is Op.SPECIAL:
                body.names[u] = name_of(u)
        for k, u in enumerate(local_memory(linear)):
            body.names[u] = local_name(k)
        _write(body, linear)
        written[dialect] = body.written
    return written[dialect]


@kept_with_root
def _written(linear: UOp) -> dict[Dialect, Statements]:
    """A cache by dialect: a kernel is rendered alone and in bundles."""
    return {}


def local_memory(linear: UOp) -> list[UOp]:
    """The LOCAL buffers of a kernel."""
    shared = (u for u in linear.src if u.op is Op.BUFFER and u.addrspace is AddrSpace.LOCAL)
    return list(dict.fromkeys(shared))


def local_name(number: int) -> str:
    return f"s{number}"


def _only_sizes(linear: UOp) -> set[UOp]:
    """The arithmetic that only shapes and the bounds of SPECIALs use, which has no statement."""
    used: set[UOp] = set()
    for u in reversed(linear.src):
        if u.op not in (Op.STACK, Op.SPECIAL) and (u in used or not is_size(u)):
            used.update(u.src)
    return {u for u in linear.src if u not in used and is_size(u)}


def _write(body: Body, linear: UOp) -> None:
    unwritten = _only_sizes(linear)
    listed = Counter(u for u in linear.src if u.op is Op.BUFFER)
    for u in (u for u, times in listed.items() if times > 1):
        # It keeps its contents between its blocks: it is declared before them.
        body.current = u
        body.starts.discard(u)
        _register(body, u)
    for u in linear.src:
        if u in unwritten:
            continue
        if u.op not in RENDER and u.op not in SPELLINGS:
            raise UnsupportedError(f"render: {u.op.name}")
        body.current = u
        RENDER.get(u.op, _elementwise)(body, u)
    while body.blocks:
        body.close(body.blocks[-1][0])


def _elementwise(body: Body, u: UOp) -> None:
    if u.shape and u.dtype is dtypes.index:
        # The indices of neighbours in memory: an access names the first one.
        body.name(u, body.of(u.src[0]))
        return
    of, args = tuple(s.dtype for s in u.src), tuple(map(body.of, u.src))
    if u.shape:
        operation = Operation(u.op, u.dtype, of, args, width=u.shape[0])
        body.variable(u, body.vectors.ops[u.op](operation))
        return
    if u.dtype is dtypes.index:
        args = tuple(body.operand(s, u.op, k) for k, s in enumerate(u.src))
        text = spell(Operation(u.op, u.dtype, of, args, is_plain=is_plain(u)))
        if u in body.inside:
            body.name(u, text)
        else:
            body.variable(u, text)
        return
    opaque = body.dialect.opaque if _is_seen_through(u) else ""
    body.variable(u, spell(Operation(u.op, u.dtype, of, args, _is_related(u), opaque=opaque)))


def _is_seen_through(u: UOp) -> bool:
    """Whether a workaround needs a function that no compiler sees through."""
    if u.op is Op.WHERE:
        # Workaround copy-or-constant: two instructions that ptxas does not join.
        return u.dtype is dtypes.float32 and any(s.op is Op.CONST for s in u.src)
    # Workaround negation-of-int16: a compiler of C may turn these into a negation.
    may_negate = u.op in (Op.NEG, Op.ADD, Op.SUB, Op.MUL, Op.MULACC)
    return may_negate and u.dtype in (dtypes.int8, dtypes.int16)


def _is_related(u: UOp) -> bool:
    """Whether an operand of the dtype of the result is computed from another operand, or is an
    element of a vector that is.
    """
    whole = [s.src[0] if s.op is Op.INDEX and s.addrspace is None else s for s in u.src]
    return any(a in b.src for a in whole for b in whole if b.dtype is u.dtype)


def _register(body: Body, u: UOp) -> None:
    if u in body.names:
        return  # LOCAL memory is declared at the top of the kernel, as C requires.
    name = f"r{body.count}"
    body.count += 1
    if u not in body.whole:
        body.write(f"{c_type(u.dtype)} {name}[{max(u.shape[0], 1)}];")
    elif u not in body.starts:
        body.write(f"{body.register_type(u)} {name};")
    body.name(u, name)


def _range(body: Body, u: UOp) -> None:
    i = f"n{arg_of(u, RangeArg).id}"
    body.block(u, f"for ({counter_type(u)} {i} = 0; {i} < {body.of(u.src[0])}; {i}++) {{")
    body.name(u, i)


def _barrier(body: Body, u: UOp) -> None:
    if body.copies and not body.copies.keys().isdisjoint(u.toposort()):
        body.write(f"{body.dialect.copied};")
    near = body.dialect.warp_barrier if u.tag == IN_WARP else None
    body.write(f"{near or body.dialect.barrier};")


def _instruction(body: Body, u: UOp) -> None:
    """INS and CUSTOM: the spelling in the dialect, with the operands in place."""
    for dtype in (u.dtype, *(s.dtype for s in u.src)):
        if dtype is not dtypes.void and storage(dtype) is not dtype:
            raise DeviceLacksError(f"{u.op.name} on {dtype.name}: only its bits exist in C")
    # An index may be held in fewer bits than it has.
    held = (
        f"({c_type(s.dtype)}){body.of(s)}" if s.dtype is dtypes.index else body.of(s) for s in u.src
    )
    text = filled(_spelling(u, body.dialect.target), list(held))
    if u.dtype is dtypes.void:
        body.write(f"{text};")
    elif u.dtype is dtypes.bool:
        body.variable(u, f"({text}) != 0")
    else:
        body.variable(u, f"({c_type(u.dtype)})({text})")


def _matrix(body: Body, u: UOp) -> None:
    if body.dialect.matrix is None:
        raise DeviceLacksError(f"{body.dialect.name} has no matrix instruction")
    fragments = ", ".join(body.of(s) for s in u.src)
    body.variable(u, f"{body.dialect.matrix(arg_of(u, WmmaArg))}({fragments})")


def _spelling(u: UOp, target: str) -> str:
    if not isinstance(u.arg, InsArg):
        return arg_of(u, CustomArg).fmt
    instruction = instruction_named(u.arg.name)
    check_operands(u)
    return instruction.spelled(target)


def _index(body: Body, u: UOp) -> None:
    if len(u.src) != 2:
        raise PassError(f"render: {u!r} has {len(u.src) - 1} indices, expected 1")
    memory, index = u.src
    if u.addrspace is None:
        body.name(u, body.vectors.element(body.of(memory), number_of(index)))
    elif base_of(memory) in body.whole:
        body.name(u, body.of(memory))
    elif u.shape:
        first = body.of(index)
        body.name(u, f"{body.of(memory)} + {f'({first})' if ' ' in first else first}")
    else:
        body.name(u, f"{body.of(memory)}[{body.of(index)}]")


def number_of(index: UOp) -> int:
    """The number that an index is; UnsupportedError for one that is computed."""
    if not isinstance(index.arg, ConstArg):
        raise UnsupportedError("an element of a vector whose number is computed")
    return int(index.arg.value)


def _load(body: Body, u: UOp) -> None:
    if u in body.copies.values():
        return  # The STORE of its value copies it.
    at = body.of(u.src[0])
    if u.shape and base_of(u.src[0]) not in body.whole:
        body.variable(u, _vector_loaded(body, u, at))
        return
    # Memory may hold any byte, but a bool is 0 or 1.
    read = f"{at} != 0" if u.dtype is dtypes.bool else at
    if len(u.src) == 3:
        read = (
            f"{body.of(u.src[2])} ? {f'({read})' if read is not at else at} : {body.of(u.src[1])}"
        )
    body.variable(u, read)


def _vector_place(body: Body, access: UOp, value: UOp, at: str) -> VectorPlace:
    space = cast(AddrSpace, access.src[0].addrspace)
    return VectorPlace(body.type(value), value.shape[0], at, space)


def _vector_loaded(body: Body, u: UOp, at: str) -> str:
    """A vector from memory; element by element where some gates are false."""
    read = body.vectors.load(_vector_place(body, u, u, at))
    if len(u.src) < 3:
        return read
    gates = body.elements(u.src[2])
    if len(set(gates)) == 1:
        return f"{gates[0]} ? {read} : {body.of(u.src[1])}"
    each = (
        f"{gate} ? ({at})[{k}] : {alt}"
        for k, (gate, alt) in enumerate(zip(gates, body.elements(u.src[1]), strict=True))
    )
    return f"{' & '.join(gates)} ? {read} : {body.made(u, list(each))}"


def _address(body: Body, u: UOp) -> None:
    place = u.src[0]
    body.variable(u, f"({c_type(u.dtype)})({'' if place.shape else '&'}{body.of(place)})")


def _store(body: Body, u: UOp) -> None:
    if u in body.copies:
        ends = (_pointer(body, access) for access in (u, body.copies[u]))
        body.write(f"{filled(body.dialect.copy, list(ends))};")
        return
    at, value = body.of(u.src[0]), body.of(u.src[1])
    if u.src[0].shape and base_of(u.src[0]) not in body.whole:
        _store_vector(body, u, at)
        return
    gate = f"if ({body.of(u.src[2])}) " if len(u.src) == 3 else ""
    register = base_of(u.src[0])
    if register in body.starts:
        body.starts.remove(register)
        gate = f"{body.register_type(register)} "
    body.write(f"{gate}{at} = {value};")


def _pointer(body: Body, access: UOp) -> str:
    """The address of what an access reads or writes."""
    at, value = body.of(access.src[0]), access if access.op is Op.LOAD else access.src[1]
    return f"({body.type(value)}*)({at})" if value.shape else f"&{at}"


def _store_vector(body: Body, u: UOp, at: str) -> None:
    """Write a vector to memory; element by element where some gates are false."""
    value = u.src[1]
    written = body.vectors.store(_vector_place(body, u, value, at), body.of(value))
    gates = body.elements(u.src[2]) if len(u.src) == 3 else []
    if len(set(gates)) < 2:
        body.write(f"if ({gates[0]}) {written}" if gates else written)
        return
    body.write(f"if ({' & '.join(gates)}) {written}")
    parts = zip(gates, body.elements(value), strict=True)
    each = " ".join(f"if ({gate}) ({at})[{k}] = {v};" for k, (gate, v) in enumerate(parts))
    body.write(f"else {{ {each} }}")


def _atomic_add(body: Body, u: UOp) -> None:
    place, value = u.src[:2]
    memory = body.dialect.shared if place.addrspace is AddrSpace.LOCAL else body.dialect.pointer
    if place.addrspace is AddrSpace.REG:
        # A register belongs to one work item, so the addition needs no atomicity.
        of, terms = (value.dtype,) * 2, (body.of(place), body.of(value))
        total = spell(Operation(Op.ADD, value.dtype, of, terms))
        added = f"{body.of(place)} = {total}"
    else:
        spelling = body.dialect.atomic_add.get(value.dtype)
        if spelling is None:
            raise DeviceLacksError(
                f"{body.dialect.name} has no atomic addition of {value.dtype.name}"
            )
        added = filled(spelling, [body.of(place), body.of(value), memory])
    gate = f"if ({body.of(u.src[2])}) " if len(u.src) == 3 else ""
    body.write(f"{gate}{added};")


RENDER: Mapping[Op, Callable[[Body, UOp], None]] = {
    Op.PARAM: lambda body, u: body.name(u, param_name(u)),
    Op.BUFFER: _register,
    Op.RANGE: _range,
    Op.END: lambda body, u: body.close(u.src[1]),
    Op.INDEX: _index,
    Op.LOAD: _load,
    Op.GETADDR: _address,
    Op.STORE: _store,
    Op.AFTER: lambda body, u: body.name(u, body.of(u.src[0])),
    Op.IF: lambda body, u: body.block(u, f"if ({body.of(u.src[0])}) {{"),
    Op.ENDIF: lambda body, u: body.close(u.src[0]),
    Op.BARRIER: _barrier,
    Op.ATOMICADD: _atomic_add,
    Op.INS: _instruction,
    Op.CUSTOM: _instruction,
    Op.WMMA: _matrix,
    # These have no statement: they are written at their use or at the top, or not at all.
    **dict.fromkeys((Op.CONST, Op.SPECIAL, Op.STACK, Op.GROUP, Op.SINK), lambda body, u: None),
}
