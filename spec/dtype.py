"""The dtypes of the language, each with an exact conversion between values and bits.

The conversions use integer arithmetic alone. They define the value of every constant, and are the
independent oracle for the numpy dtypes of the interpreter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import overload

Number = bool | int | float | Fraction
Scalar = bool | int | float


class Kind(Enum):
    """The kind of the values of a dtype."""

    __hash__ = object.__hash__  # As Op has.

    BOOL = "bool"
    INT = "int"
    UINT = "uint"
    FLOAT = "float"
    INDEX = "index"
    VOID = "void"


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A binary floating-point format: sign bit, exponent field, fraction field.

    `has_inf` is false for fp8e4m3 (fn): there the all-ones exponent holds ordinary values, except
    for the pattern with an all-ones fraction, which is NaN.
    """

    exponent_bits: int
    fraction_bits: int
    has_inf: bool = True

    @property
    def precision(self) -> int:
        """Significand bits with the hidden one (p)."""
        return self.fraction_bits + 1

    def holds_products_of(self, factor: FloatFormat) -> bool:
        """Whether every product of two finite floats of another format is one of this format."""
        is_precise = 2 * factor.precision <= self.precision
        return is_precise and factor.exponent_bits < self.exponent_bits

    @property
    def bias(self) -> int:
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def emin(self) -> int:
        """Exponent of the smallest normal value."""
        return 1 - self.bias

    @property
    def sign_bit(self) -> int:
        return 1 << (self.exponent_bits + self.fraction_bits)

    @property
    def exponent_mask(self) -> int:
        return ((1 << self.exponent_bits) - 1) << self.fraction_bits

    @property
    def fraction_mask(self) -> int:
        return (1 << self.fraction_bits) - 1

    @property
    def inf_bits(self) -> int | None:
        """Bits of +inf, or None for a format without infinities."""
        return self.exponent_mask if self.has_inf else None

    @property
    def nan_bits(self) -> int:
        """Bits of the default NaN: positive and quiet."""
        if not self.has_inf:
            return self.exponent_mask | self.fraction_mask
        return self.exponent_mask | (1 << (self.fraction_bits - 1))

    @property
    def max_bits(self) -> int:
        """Bits of the largest finite value; positive finite values are the patterns 0..max_bits."""
        return (self.exponent_mask if self.has_inf else self.nan_bits) - 1

    def is_nan(self, bits: int) -> bool:
        magnitude = bits & ~self.sign_bit
        return magnitude > self.exponent_mask if self.has_inf else magnitude == self.nan_bits

    def finite(self, magnitude: int) -> Fraction:
        """The value of a positive finite bit pattern."""
        exponent, fraction = magnitude >> self.fraction_bits, magnitude & self.fraction_mask
        significand = fraction if exponent == 0 else fraction | (1 << self.fraction_bits)
        return Fraction(significand) * Fraction(2) ** (
            max(exponent, 1) - self.bias - self.fraction_bits
        )

    def round(self, magnitude: Fraction) -> int:
        """Bits of a non-negative real, rounded once to nearest even.

        Above the range the result is inf, or NaN for a format without infinities.
        """
        exponent = self.emin
        if magnitude >= Fraction(2) ** self.emin:
            exponent = floor_log2(magnitude)
        steps = magnitude / Fraction(2) ** (exponent - self.fraction_bits)
        # Neighbouring patterns are neighbouring values: a carry out of the fraction is the next
        # exponent.
        field = (
            0
            if exponent == self.emin and steps < 1 << self.fraction_bits
            else exponent + self.bias - 1
        )
        bits = (field << self.fraction_bits) + round(steps)
        if bits <= self.max_bits:
            return bits
        return self.nan_bits if self.inf_bits is None else self.inf_bits


def floor_log2(x: Fraction) -> int:
    """floor(log2(x)) of a positive fraction, exactly."""
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    return guess if x >= Fraction(2) ** guess else guess - 1


@dataclass(frozen=True, eq=False)
class DType:
    """A dtype: its name in text, its kind, its width in bits and, for floats, its format.

    `DType("float8_e3m4", ...)` is a new one, for a dtype from outside this package; ValueError for
    a name that is taken. There is one object of each, so equality is identity.
    """

    name: str
    kind: Kind
    bits: int
    float_format: FloatFormat | None = None

    def __post_init__(self) -> None:
        if self.name in DTYPES:
            raise ValueError(f"there is a dtype {self.name}")
        DTYPES[self.name] = self

    def __repr__(self) -> str:
        return f"dtypes.{self.name}"

    def __reduce__(self) -> tuple[object, ...]:
        return _named, (self.name,)

    @cached_property
    def itemsize(self) -> int:
        """Bytes of one element in storage (a bool takes one, void none)."""
        return (self.bits + 7) // 8

    @property
    def format(self) -> FloatFormat:
        """The float format; a TypeError for any other kind."""
        if self.float_format is None:
            raise TypeError(f"{self.name} is not a float dtype")
        return self.float_format

    @cached_property
    def is_float(self) -> bool:
        return self.kind is Kind.FLOAT

    @cached_property
    def is_int(self) -> bool:
        """A fixed-width integer (not bool, not index)."""
        return self.kind in (Kind.INT, Kind.UINT)

    @cached_property
    def is_signed(self) -> bool:
        return self.kind in (Kind.INT, Kind.INDEX)

    @cached_property
    def min(self) -> Scalar:
        """The lowest value: -inf, or for a format without infinities the lowest finite value."""
        match self.kind:
            case Kind.FLOAT:
                return -float(self.max)
            case Kind.INT | Kind.INDEX:
                return -(1 << (self.bits - 1))
            case Kind.UINT:
                return 0
            case Kind.BOOL:
                return False
        raise TypeError("void has no values")

    @cached_property
    def max(self) -> Scalar:
        """The highest value: inf, or for a format without infinities the highest finite value."""
        match self.kind:
            case Kind.FLOAT:
                form = self.format
                return math.inf if form.has_inf else float(form.finite(form.max_bits))
            case Kind.INT | Kind.INDEX:
                return (1 << (self.bits - 1)) - 1
            case Kind.UINT:
                return (1 << self.bits) - 1
            case Kind.BOOL:
                return True
        raise TypeError("void has no values")

    def encode(self, value: Number) -> int:
        """The bits of a value. A float is rounded once to nearest even, any NaN is the default NaN.

        Raises ValueError for a value that the dtype cannot hold: an integer out of range, a
        fraction in an integer.
        """
        if self.kind is Kind.FLOAT:
            return self._encode_float(value)
        if self.kind is Kind.VOID:
            raise ValueError("void has no values")
        if (isinstance(value, float) and not math.isfinite(value)) or value != int(value):
            raise ValueError(f"{value!r} is not a value of {self.name}: expected an integer")
        if not self.min <= value <= self.max:
            raise ValueError(f"{value!r} is outside {self.name}: expected {self.min}..{self.max}")
        return int(value) & ((1 << self.bits) - 1)

    def _encode_float(self, value: Number) -> int:
        form = self.format
        if isinstance(value, float) and not math.isfinite(value):
            if math.isnan(value) or form.inf_bits is None:
                return form.nan_bits | (form.sign_bit if value < 0 else 0)
            return form.inf_bits | (form.sign_bit if value < 0 else 0)
        negative = math.copysign(1.0, value) < 0 if isinstance(value, float) else value < 0
        return form.round(abs(Fraction(value))) | (form.sign_bit if negative else 0)

    def decode(self, bits: int) -> Scalar:
        """The value of a bit pattern, exactly; every NaN pattern gives a NaN.

        Raises ValueError for bits that are no pattern of this dtype: too wide, or a bool other than
        0 and 1.
        """
        if not 0 <= bits < 1 << self.bits:
            raise ValueError(
                f"{bits:#x} is no bit pattern of {self.name}: expected {self.bits} bits"
            )
        match self.kind:
            case Kind.FLOAT:
                return self._decode_float(bits)
            case Kind.BOOL:
                return bool(bits)
            case Kind.UINT:
                return bits
        return bits - (1 << self.bits) if bits >> (self.bits - 1) else bits

    def _decode_float(self, bits: int) -> float:
        form = self.format
        if form.is_nan(bits):
            return math.nan
        sign = -1.0 if bits & form.sign_bit else 1.0
        magnitude = bits & ~form.sign_bit
        if magnitude == form.inf_bits:
            return sign * math.inf
        return sign * float(form.finite(magnitude))


DTYPES: dict[str, DType] = {}
"""Every dtype by name; one from another package enters itself."""


class dtypes:  # noqa: N801 - a namespace read as a word: dtypes.float32
    """The dtypes of the language."""

    bool = DType("bool", Kind.BOOL, 1)
    int8 = DType("int8", Kind.INT, 8)
    int16 = DType("int16", Kind.INT, 16)
    int32 = DType("int32", Kind.INT, 32)
    int64 = DType("int64", Kind.INT, 64)
    uint8 = DType("uint8", Kind.UINT, 8)
    uint16 = DType("uint16", Kind.UINT, 16)
    uint32 = DType("uint32", Kind.UINT, 32)
    uint64 = DType("uint64", Kind.UINT, 64)
    float16 = DType("float16", Kind.FLOAT, 16, FloatFormat(5, 10))
    bfloat16 = DType("bfloat16", Kind.FLOAT, 16, FloatFormat(8, 7))
    float32 = DType("float32", Kind.FLOAT, 32, FloatFormat(8, 23))
    float64 = DType("float64", Kind.FLOAT, 64, FloatFormat(11, 52))
    fp8e4m3 = DType("fp8e4m3", Kind.FLOAT, 8, FloatFormat(4, 3, has_inf=False))
    fp8e5m2 = DType("fp8e5m2", Kind.FLOAT, 8, FloatFormat(5, 2))
    index = DType("index", Kind.INDEX, 64)
    void = DType("void", Kind.VOID, 0)


class DTypesOf(Sequence[DType]):
    """The dtypes of some kinds, kind by kind; also those that another package adds later."""

    def __init__(self, *kinds: Kind) -> None:
        self.kinds = kinds

    def __contains__(self, dtype: object) -> bool:
        return isinstance(dtype, DType) and dtype.kind in self.kinds

    def __iter__(self) -> Iterator[DType]:
        return (d for kind in self.kinds for d in DTYPES.values() if d.kind is kind)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        # Asked at every node that is evaluated.
        return bool(self.kinds)

    @overload
    def __getitem__(self, position: int) -> DType: ...
    @overload
    def __getitem__(self, position: slice) -> tuple[DType, ...]: ...
    def __getitem__(self, position: int | slice) -> DType | tuple[DType, ...]:
        return tuple(self)[position]


FLOATS = DTypesOf(Kind.FLOAT)
INTS = DTypesOf(Kind.INT, Kind.UINT)
NUMBERS = DTypesOf(Kind.INT, Kind.UINT, Kind.FLOAT, Kind.INDEX)
VALUES = DTypesOf(Kind.BOOL, *NUMBERS.kinds)
"""The dtypes that have values: all but void."""


def _named(name: str) -> DType:
    return DTYPES[name]
