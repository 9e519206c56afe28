"""Declarations of the decomposed elementwise ops, each with a decomposition into primitives."""

from __future__ import annotations

from uop.spec import latitude as lat
from uop.spec.args import ConstArg
from uop.spec.dtype import FLOATS, NUMBERS, VALUES, Number, dtypes
from uop.spec.ops import gradients
from uop.spec.ops.elementwise import AB, BOOL, TO_BOOL, elementwise
from uop.spec.ops.names import Op
from uop.spec.properties import min_max
from uop.spec.registry import Build, Node

SECTION = "decomposed"


def _const(build: Build, like: Node, value: Number) -> Node:
    return build(Op.CONST, arg=ConstArg.of(value, like.dtype))


def _neg(build: Build, u: Node) -> Node:
    (a,) = u.src
    if a.dtype.is_signed or a.dtype.is_float:
        return build(Op.MUL, a, _const(build, a, -1))
    # For an unsigned dtype -1 is its largest value, since products wrap (D-045).
    return build(Op.MUL, a, _const(build, a, a.dtype.max))


def _sub(build: Build, u: Node) -> Node:
    a, b = u.src
    return build(Op.ADD, a, build(Op.NEG, b))


def _div(build: Build, u: Node) -> Node:
    a, b = u.src
    return build(Op.MUL, a, build(Op.RECIP, b))


def _not(build: Build, a: Node) -> Node:
    return build(Op.CMPNE, a, build(Op.CONST, arg=ConstArg.of(True, dtypes.bool)))


def _cmpgt(build: Build, u: Node) -> Node:
    a, b = u.src
    return build(Op.CMPLT, b, a)


def _cmpge(build: Build, u: Node) -> Node:
    return _not(build, build(Op.CMPLT, *u.src))


def _cmple(build: Build, u: Node) -> Node:
    a, b = u.src
    return _not(build, build(Op.CMPLT, b, a))


def _cmpeq(build: Build, u: Node) -> Node:
    return _not(build, build(Op.CMPNE, *u.src))


def _not_of(build: Build, u: Node) -> Node:
    return _not(build, u.src[0])


def _sqrt(build: Build, u: Node) -> Node:
    (a,) = u.src
    return build(Op.EXP2, build(Op.MUL, build(Op.LOG2, a), _const(build, a, 0.5)))


def _pow(build: Build, u: Node) -> Node:
    a, b = u.src
    return build(Op.EXP2, build(Op.MUL, build(Op.LOG2, a), b))


def _mulacc(build: Build, u: Node) -> Node:
    a, b, c = u.src
    return build(Op.ADD, build(Op.MUL, a, b), c)


elementwise(
    Op.NEG,
    ("A",),
    "-x; integers wrap.",
    NUMBERS,
    section=SECTION,
    interval=min_max.neg,
    decomposition=_neg,
    gradient=gradients.neg,
)
elementwise(
    Op.SUB,
    AB,
    "a - b; integers wrap.",
    NUMBERS,
    section=SECTION,
    interval=min_max.sub,
    latitude=lat.ADD,
    decomposition=_sub,
    gradient=gradients.sub,
)
elementwise(
    Op.DIV,
    AB,
    "a / b.",
    FLOATS,
    section=SECTION,
    latitude=lat.DIV,
    decomposition=_div,
    gradient=gradients.div,
)
elementwise(
    Op.CMPGT,
    AB,
    "a > b; false with a NaN.",
    VALUES,
    section=SECTION,
    result=TO_BOOL,
    decomposition=_cmpgt,
)
elementwise(
    Op.CMPGE,
    AB,
    "a >= b; false with a NaN.",
    VALUES,
    section=SECTION,
    result=TO_BOOL,
    latitude=lat.CMP_NAN,
    decomposition=_cmpge,
)
elementwise(
    Op.CMPLE,
    AB,
    "a <= b; false with a NaN.",
    VALUES,
    section=SECTION,
    result=TO_BOOL,
    latitude=lat.CMP_NAN,
    decomposition=_cmple,
)
elementwise(
    Op.CMPEQ,
    AB,
    "a == b; false with a NaN.",
    VALUES,
    section=SECTION,
    result=TO_BOOL,
    decomposition=_cmpeq,
)
elementwise(
    Op.NOT, ("A",), "not a.", BOOL, section=SECTION, decomposition=_not_of, interval=min_max.not_
)
elementwise(
    Op.EXP2,
    ("A",),
    "2 to the power x.",
    FLOATS,
    section=SECTION,
    latitude=lat.EXP2,
    gradient=gradients.exp2,
    is_transcendental=True,
)
elementwise(
    Op.LOG2,
    ("A",),
    "The logarithm to base 2.",
    FLOATS,
    section=SECTION,
    latitude=lat.LOG2,
    gradient=gradients.log2,
    is_transcendental=True,
)
elementwise(
    Op.SIN,
    ("A",),
    "The sine, of radians.",
    FLOATS,
    section=SECTION,
    latitude=lat.SIN,
    gradient=gradients.sin,
    is_transcendental=True,
)
elementwise(
    Op.SQRT,
    ("A",),
    "The square root.",
    FLOATS,
    section=SECTION,
    latitude=lat.SQRT,
    decomposition=_sqrt,
    gradient=gradients.sqrt,
    interval=min_max.sqrt,
)
elementwise(
    Op.POW,
    AB,
    "a to the power b, with the special values of IEEE 754.",
    FLOATS,
    section=SECTION,
    latitude=lat.POW,
    decomposition=_pow,
    gradient=gradients.power,
    is_transcendental=True,
)
elementwise(
    Op.MULACC,
    ("A", "B", "C"),
    "a * b + c, rounded after each step.",
    VALUES,
    section=SECTION,
    latitude=lat.ADD,
    decomposition=_mulacc,
    gradient=gradients.mulacc,
)
elementwise(
    Op.THREEFRY,
    ("x", "key"),
    "Threefry 2x32 with 20 rounds: the low half of a uint64 is word 0, the high half word 1.",
    (dtypes.uint64,),
    section=SECTION,
)
