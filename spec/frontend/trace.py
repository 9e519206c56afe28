"""Traces Tensors: finds the ops that the user called, from the outputs back to the data."""

from __future__ import annotations

from dataclasses import fields
from enum import Enum
from itertools import count
from math import prod
from reprlib import repr as _repr
from typing import cast

from uop.spec.args import Arg, ConstArg, Device, GetTupleArg, ReduceArg, arg_of
from uop.spec.conditions.labels import TRACE_OUTPUTS
from uop.spec.errors import users_line
from uop.spec.frontend.calls import Attribute, attribute, call_of, device_attribute, sizes, stored
from uop.spec.frontend.tensor import FOLDS, Tensor
from uop.spec.frontend.trace_text import BODY, Trace, TraceOp, TraceTensor
from uop.spec.frontend.values import elements, held_by
from uop.spec.ops.names import Op
from uop.spec.text.array import nested
from uop.spec.text.literal import Word
from uop.spec.text.printer import in_place
from uop.spec.uop import UOp
from uop.spec.walk import outside_bodies, toposort

DATA_LIMIT = 64
"""Data of up to this many elements stands in the text."""
KINDS = {
    **{Op.ADD: "SUM", Op.IDIV: "FLOOR_DIV", Op.MAX: "MAXIMUM", Op.MIN: "MINIMUM"},
    **{Op.CMPLT: "LESS", Op.CMPLE: "LESS_EQUAL", Op.CMPGT: "GREATER", Op.CMPGE: "GREATER_EQUAL"},
    **{Op.CMPEQ: "EQUAL", Op.CMPNE: "NOT_EQUAL"},
}
"""Kinds of elementwise ops that have another name than the op."""
NAMES = {Op.LOAD: "copy", Op.INDEX: "getitem"}
OPERANDS = {"s": "shape", "s'": "shape", "o": "offset", "i": "index"}


def trace(*outputs: Tensor) -> Trace:
    """The trace of these Tensors: one op for each function that the user called.

    A call on a Tensor after its evaluation starts from a storage with its value.
    """
    strange = [t for t in outputs if not isinstance(t, Tensor)]
    if strange or not outputs:
        raise TRACE_OUTPUTS.error("trace", _repr(strange[0] if strange else ()), users_line())
    bodies: dict[UOp, str] = {}
    texts: dict[str, Trace] = {}
    found = _traced([t.uop for t in outputs], bodies, texts)
    return Trace(found.ops, found.outputs, texts)


def _traced(roots: list[UOp], bodies: dict[UOp, str], texts: dict[str, Trace]) -> Trace:
    """The trace of nodes. Bodies of functions get names, and their traces, when they are met."""
    ops: list[TraceOp] = []
    tensors: dict[UOp, TraceTensor] = {}
    numbers = count()
    for u in toposort(roots, _inputs):
        if u in tensors:
            continue
        inputs = tuple([tensors[result] for s in _inputs(u) for result in _results(s)])
        results = _results(u)
        name, attributes = _described(u)
        if u.op is Op.FUNCTION:
            attributes = {BODY: Word(_body(u.src[0], bodies, texts))}
        made = [TraceTensor(f"t{next(numbers)}", sizes(r), r.dtype, r.device, r) for r in results]
        ops.append(TraceOp(name, inputs, attributes, tuple(made)))
        tensors.update(zip(results, made, strict=True))
    outputs = [tensors[result] for root in roots for result in _results(root)]
    return Trace(tuple(ops), tuple(outputs))


def _results(u: UOp) -> list[UOp]:
    """The values that a node has: those of a FUNCTION are the elements of its TUPLE."""
    if u.op is not Op.FUNCTION:
        return [u]
    return [UOp(Op.GETTUPLE, u, arg=GetTupleArg(k)) for k in range(len(u.src[0].src))]


def _body(body: UOp, names: dict[UOp, str], texts: dict[str, Trace]) -> str:
    """The name of the trace of a body; those of the functions that it calls come first."""
    if body not in names:
        found = _traced([*body.src], names, texts)
        names[body] = f"f{len(names)}"
        texts[names[body]] = found
    return names[body]


def _inputs(u: UOp) -> tuple[UOp, ...]:
    """The nodes whose tensors an op takes: those of the call that made it, if there was one."""
    call = call_of(u)
    if call is not None:
        return call.inputs
    return tuple([s for s in outside_bodies(u) if in_place(s) is None])


def _described(u: UOp) -> tuple[str, dict[str, Attribute]]:
    """The name and the attributes of the op that made a node."""
    call, name = call_of(u), NAMES.get(u.op, u.op.name.lower())
    if call is not None:
        return call.name, call.attributes
    if u.op is Op.CONST or held_by(u) is not None:
        return "storage", stored(_data(u), u)
    is_named = u.op in (Op.WHERE, Op.CAST, Op.MULACC, Op.THREEFRY)
    if u.declaration.is_elementwise and not is_named:
        kind = Word(f"Kind.{KINDS.get(u.op, u.op.name)}")
        return ("unaryelementwise" if len(u.src) == 1 else "binaryelementwise"), {"kind": kind}
    if u.op is Op.REDUCE and not u.src[1:]:
        fold = arg_of(u, ReduceArg)
        kinds = (kind for kind, op in FOLDS.items() if op is fold.op)
        kind = Word(f"Kind.{next(kinds, fold.op.name)}")
        return name, {"kind": kind, "axes": fold.axes, "keepdims": True}
    return name, {**_in_place(u), **_fields(u.arg)}


def _in_place(u: UOp) -> dict[str, Attribute]:
    """The operands that are shapes and indices: no tensors, but attributes by their names."""
    names = u.declaration.src
    found: dict[str, Attribute] = {}
    for k, s in enumerate(u.src[: len(names)]):
        name = OPERANDS.get(names[k].rstrip("*?"), names[k].rstrip("*?"))
        if names[k].endswith("*") and any(in_place(t) for t in u.src[k:]):
            found[name] = tuple([_in_text(t) for t in u.src[k:]])
        elif in_place(s) is not None:
            found[name] = _in_text(s)
    return found


def _in_text(u: UOp) -> Attribute:
    """An index or a shape; anything else is the next of the tensors."""
    if in_place(u) is None:
        return attribute(u)
    if isinstance(u.arg, ConstArg):
        return u.arg.value
    return tuple([_in_text(size) for size in u.src])


def _fields(arg: Arg | None) -> dict[str, Attribute]:
    """The fields of an arg that are set."""
    values = {f.name: getattr(arg, f.name) for f in fields(arg)} if arg is not None else {}
    return {name: _field(name, value) for name, value in values.items() if value is not None}


def _field(name: str, value: object) -> Attribute:
    if name == "device":
        return device_attribute(cast(Device, value))
    return Word(value.name) if isinstance(value, Enum | Op) else attribute(value)


def _data(u: UOp) -> object:
    """The data of a storage, None for much of it."""
    if isinstance(u.arg, ConstArg):
        return u.arg.value
    held = held_by(u)
    is_short = held is not None and prod(held.shape) <= DATA_LIMIT
    return nested(elements(held), held.shape, list) if held is not None and is_short else None
