"""Declarations of the decomposed elementwise ops, each with a decomposition into primitives."""

from __future__ import annotations

from functools import partial

from uop.spec import latitude as lat
from uop.spec.args import ConstArg
from uop.spec.dtype import FLOATS, NUMBERS, VALUES, dtypes
from uop.spec.ops import gradients
from uop.spec.ops.elementwise import AB, BOOL, TO_BOOL, elementwise
from uop.spec.ops.names import Op
from uop.spec.ops.sizes import const_like
from uop.spec.properties import min_max
from uop.spec.registry import Build, Node

_decomposed = partial(elementwise, section="decomposed")
_comparison = partial(_decomposed, src=AB, allowed=VALUES, result=TO_BOOL)
_function = partial(_decomposed, allowed=FLOATS, is_transcendental=True)


def _neg(build: Build, u: Node) -> Node:
    (a,) = u.src
    if a.dtype.is_signed or a.dtype.is_float:
        return build(Op.MUL, a, const_like(build, a, -1))
    # For an unsigned dtype -1 is its largest value, since products wrap (D-045).
    return build(Op.MUL, a, const_like(build, a, a.dtype.max))


def _not(build: Build, a: Node) -> Node:
    return build(Op.CMPNE, a, build(Op.CONST, arg=ConstArg.of(True, dtypes.bool)))


def _sqrt(build: Build, u: Node) -> Node:
    (a,) = u.src
    return build(Op.EXP2, build(Op.MUL, build(Op.LOG2, a), const_like(build, a, 0.5)))


_decomposed(
    Op.NEG,
    ("A",),
    "-x; integers wrap.",
    NUMBERS,
    interval=min_max.neg,
    decomposition=_neg,
    gradient=gradients.neg,
)
_decomposed(
    Op.SUB,
    AB,
    "a - b; integers wrap.",
    NUMBERS,
    interval=min_max.sub,
    latitude=lat.ADD,
    decomposition=lambda build, u: build(Op.ADD, u.src[0], build(Op.NEG, u.src[1])),
    gradient=gradients.sub,
)
_decomposed(
    Op.DIV,
    AB,
    "a / b.",
    FLOATS,
    latitude=lat.DIV,
    decomposition=lambda build, u: build(Op.MUL, u.src[0], build(Op.RECIP, u.src[1])),
    gradient=gradients.div,
)
_comparison(
    Op.CMPGT,
    doc="a > b; false with a NaN.",
    decomposition=lambda build, u: build(Op.CMPLT, *u.src[::-1]),
)
_comparison(
    Op.CMPGE,
    doc="a >= b; false with a NaN.",
    latitude=lat.CMP_NAN,
    decomposition=lambda build, u: _not(build, build(Op.CMPLT, *u.src)),
)
_comparison(
    Op.CMPLE,
    doc="a <= b; false with a NaN.",
    latitude=lat.CMP_NAN,
    decomposition=lambda build, u: _not(build, build(Op.CMPLT, *u.src[::-1])),
)
_comparison(
    Op.CMPEQ,
    doc="a == b; false with a NaN.",
    decomposition=lambda build, u: _not(build, build(Op.CMPNE, *u.src)),
)
_decomposed(
    Op.NOT,
    ("A",),
    "not a.",
    BOOL,
    decomposition=lambda build, u: _not(build, u.src[0]),
    interval=min_max.not_,
)
_function(Op.EXP2, ("A",), "2 to the power x.", latitude=lat.EXP2, gradient=gradients.exp2)
_function(Op.LOG2, ("A",), "The logarithm to base 2.", latitude=lat.LOG2, gradient=gradients.log2)
_function(Op.SIN, ("A",), "The sine, of radians.", latitude=lat.SIN, gradient=gradients.sin)
_decomposed(
    Op.SQRT,
    ("A",),
    "The square root.",
    FLOATS,
    latitude=lat.SQRT,
    decomposition=_sqrt,
    gradient=gradients.sqrt,
    interval=min_max.sqrt,
)
_function(
    Op.POW,
    AB,
    "a to the power b, with the special values of IEEE 754.",
    latitude=lat.POW,
    decomposition=lambda build, u: build(
        Op.EXP2, build(Op.MUL, build(Op.LOG2, u.src[0]), u.src[1])
    ),
    gradient=gradients.power,
)
_decomposed(
    Op.MULACC,
    ("A", "B", "C"),
    "a * b + c, rounded after each step.",
    VALUES,
    latitude=lat.ADD,
    decomposition=lambda build, u: build(Op.ADD, build(Op.MUL, *u.src[:2]), u.src[2]),
    gradient=gradients.mulacc,
)
_decomposed(
    Op.THREEFRY,
    ("x", "key"),
    "Threefry 2x32 with 20 rounds: the low half of a uint64 is word 0, the high half word 1.",
    (dtypes.uint64,),
)
