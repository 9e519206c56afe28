"""Latitudes and profiles as data: how far a result may differ from the reference.

Every op has a latitude, every backend a profile. `uop.interpreter.accepted` computes the accepted
sets from them. On ints and bools every latitude is EXACT.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Literal

from uop.spec.dtype import DType, Kind, dtypes
from uop.spec.ops.names import Op


@dataclass(frozen=True, slots=True)
class Latitude:
    """The results that an op may return besides the reference. `says` is its sentence in the
    documentation, and `decisions` give the reasons.
    """

    says: str
    decisions: tuple[str, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True, slots=True)
class Exact(Latitude):
    """The bits of the reference, NaN payloads included."""


@dataclass(frozen=True, slots=True)
class Rounded(Latitude):
    """The exact result rounded once to nearest even; payload and sign of a NaN are free."""


@dataclass(frozen=True, slots=True)
class Ulp(Latitude):
    """A distance from the exact result in ulps, by float dtype; special values have no distance."""

    budgets: tuple[tuple[DType, Fraction], ...]
    smaller: Fraction
    """The budget of every other float dtype."""

    def budget(self, dtype: DType) -> Fraction:
        """The accepted distance for a float dtype in ulps; KeyError for another dtype."""
        for known, budget in self.budgets:
            if known is dtype:
                return budget
        if not dtype.is_float:
            raise KeyError(f"no budget for {dtype.name}")
        return self.smaller


@dataclass(frozen=True, slots=True)
class Quotient(Ulp):
    """The hull of the quotient within a budget and of products with accepted reciprocals."""


@dataclass(frozen=True, slots=True)
class Maximum(Latitude):
    """One of the operands: with a NaN either operand, of two zeros either one."""


@dataclass(frozen=True, slots=True)
class Unordered(Latitude):
    """A comparison whose published decomposition differs from IEEE 754 on NaN: both answers."""


@dataclass(frozen=True, slots=True)
class Reduced(Latitude):
    """A fold in any order and grouping, with any accumulator at least as wide as the dtype."""


def _ulp(float32: str, float64: str, float16: str, smaller: str, *decisions: str) -> Ulp:
    says = f"within {float32} ulp (float64: {float64}, float16: {float16}, smaller: {smaller})"
    known = (dtypes.float32, float32), (dtypes.float64, float64), (dtypes.float16, float16)
    budgets = tuple((d, Fraction(budget)) for d, budget in known)
    return Ulp(says, budgets, Fraction(smaller), decisions=decisions)


EXACT = Exact("the bits of the reference")
ADD = Rounded(
    "one rounding to nearest even; the bits of a NaN are free", decisions=("D-034", "D-035")
)
MUL = ADD
CAST = ADD
MAX = Maximum(
    "with one NaN: NaN or the other operand; of two zeros either one", decisions=("D-033",)
)
CMP_NAN = Unordered("with a NaN: either answer", decisions=("D-032",))
REDUCE = Reduced(
    "any order, grouping or wider accumulator; a zero of either sign", decisions=("D-047",)
)
WMMA = Reduced(
    "products exact; their sum in any order, grouping or wider accumulator", decisions=("D-067",)
)
RECIP = _ulp("2.5", "0.5", "1", "1", "D-036")
DIV = Quotient(
    "the hull of a/b within the budget of RECIP and of a times every accepted reciprocal of b",
    RECIP.budgets,
    RECIP.smaller,
    decisions=RECIP.decisions,
)
EXP2 = _ulp("3", "3", "2", "1", "D-043", "D-044")
LOG2 = _ulp("3", "3", "2", "1", "D-043", "D-044")
SIN = _ulp("4", "4", "2", "1", "D-043", "D-044")
SQRT = _ulp("3", "0.5", "1", "1", "D-043", "D-044")
POW = _ulp("16", "16", "4", "1", "D-043", "D-044")

MaxNan = Literal["either", "propagate", "number"]
CmpNan = Literal["either", "ieee"]
IntDiv = Literal["floor", "trunc"]
Fill = Literal["invalid", "zero"]
Signalling = Literal["either", "kept"]


KNOBS = {
    "max_nan": "MAX and MIN with one NaN give either operand, the NaN, or the other operand.",
    "cmp_nan": "CMPGE and CMPLE with a NaN give either answer, or false as IEEE 754 has it.",
    "contract": "Sums in which a product may stay unrounded: ADD (and REDUCE), SUB, MULACC.",
    "reassociate": "Ops that may be regrouped, where each value between is used once: ADD (with "
    "SUB), MUL; nested REDUCE ops may not.",
    "ftz": "Dtypes whose subnormals may be read and written as zeros.",
    "fp8_saturate": "A CAST to fp8 gives the largest finite value instead of NaN or infinity.",
    "decomposed": "Ops that may be as inaccurate as their published decomposition.",
    "wmma": "A program may run on matrix units.",
    "int_div_traps": "IDIV, MOD, CDIV or CMOD by zero may end the program.",
    "int_div": "IDIV and MOD of integers floor, or round toward zero; of an index they always "
    "floor.",
    "excess_precision": "Emulated dtypes whose values may stay unrounded between ops; "
    "a CAST rounds.",
    "pad_fill": "What PAD without an explicit fill puts around its operand.",
    "algebra": "Laws that hold whatever x is: x*0 = 0 (MUL), x-x = 0 (SUB), x/x = 1 (DIV).",
    "snan": "A copy of a signalling NaN keeps its bits, or is its quiet form.",
}
"""The documentation of each field of Profile, in their order."""

OPS_OF = {
    "contract": (Op.ADD, Op.SUB, Op.MULACC),
    "reassociate": (Op.ADD, Op.MUL),
    "algebra": (Op.MUL, Op.SUB, Op.DIV),
}
"""The ops that a knob may name; `decomposed` may name each op with a decomposition."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The choices of a backend where the spec leaves one: a field per knob, documented in KNOBS.

    The default of each field is its strict value.
    """

    max_nan: MaxNan = "either"
    cmp_nan: CmpNan = "either"
    contract: frozenset[Op] = frozenset()
    reassociate: frozenset[Op] = frozenset()
    ftz: frozenset[DType] = frozenset()
    fp8_saturate: bool = False
    decomposed: frozenset[Op] = frozenset()
    wmma: bool = False
    int_div_traps: bool = False
    int_div: IntDiv = "floor"
    excess_precision: frozenset[DType] = frozenset()
    pad_fill: Fill = "invalid"
    algebra: frozenset[Op] = frozenset()
    snan: Signalling = "either"

    def truncates(self, dtype: DType) -> bool:
        """Whether IDIV and MOD of a dtype round toward zero; those of an index never do (D-100)."""
        return self.int_div == "trunc" and dtype.kind is not Kind.INDEX

    def declared(self) -> dict[str, str]:
        """The text of every knob that is not at its strict value."""
        pairs = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {name: _knob_text(name, v) for name, v in pairs if v != getattr(STRICT, name)}

    def __str__(self) -> str:
        """`strict`, or the declared knobs: `max_nan=propagate ftz=float16,float32`."""
        return " ".join(f"{name}={text}" for name, text in self.declared().items()) or "strict"


STRICT = Profile()
LIBERTIES = frozenset(knob for knob in KNOBS if getattr(STRICT, knob) != "either")
"""The knobs that accept more than strict does; any other knob selects one of its alternatives."""


def _knob_text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, frozenset):
        if value == set(OPS_OF.get(name, ())):
            return "all"
        return ",".join(sorted(member.name for member in value))
    return str(value)
