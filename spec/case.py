"""The data of a `.uop` file: programs with inputs and expected results, as dataclasses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from uop.spec.dtype import DType, dtypes
from uop.spec.errors import MalformedError
from uop.spec.graph import slots_of
from uop.spec.latitude import STRICT, Profile
from uop.spec.ops.names import Op
from uop.spec.text.array import Array
from uop.spec.text.codec import decode_scalar, encode_scalar
from uop.spec.text.literal import Literal, Word, print_literal
from uop.spec.text.program import Unbuilt, print_program, print_unbuilt
from uop.spec.uop import UOp


@dataclass(frozen=True, slots=True)
class ElementSet:
    """The accepted values of one element: intervals of bits, or NaN.

    An interval has its ends, in the order -inf < -0 < +0 < inf; `nan` accepts every NaN, `nan_bits`
    single ones; `any` accepts everything.
    """

    intervals: tuple[tuple[int, int], ...] = ()
    nan: bool = False
    nan_bits: tuple[int, ...] = ()
    any: bool = False


@dataclass(frozen=True, slots=True)
class FileCase:
    """A program, its inputs by slot, and the expected results by output.

    A must-reject case has a label in `invalid` and, instead of a root, the node that breaks the
    constraint. An undefined case may name the broken clause in `undefined_label`.
    """

    id: str = ""
    root: UOp | None = None
    inputs: Mapping[int, Array] = field(default_factory=dict)
    expect: Mapping[int, Array] = field(default_factory=dict)
    accept: Mapping[int, tuple[ElementSet, ...]] = field(default_factory=dict)
    undefined: bool = False
    invalid: str | None = None
    rejected: Unbuilt | None = None
    profile: Profile = STRICT
    comment: str = ""
    undefined_label: str = ""
    path: str = field(default="", compare=False)
    lines: Mapping[UOp, int] = field(default_factory=dict, compare=False, repr=False)
    """The line of each node in the file `path`, for a case that was read from a file."""

    @property
    def text(self) -> str:
        """The text of the program; that of a must-reject case ends with the broken node."""
        if self.root is not None:
            return print_program(self.root)
        return "" if self.rejected is None else print_unbuilt(self.rejected)

    def place_of(self, nodes: Iterable[UOp]) -> str:
        """`FILE:3` for the lines of these nodes; `FILE` if they have no line.

        Evaluation may rebuild nodes, for example with a number for a variable: such a node has the
        lines of the nodes with the same op, arg and tag.
        """
        found: list[int] = []
        for u in nodes:
            same = (u.op, u.arg, u.tag)
            equal = [n for v, n in self.lines.items() if (v.op, v.arg, v.tag) == same]
            found += [self.lines[u]] if u in self.lines else equal
        name = f"{self.path}:" if self.path else "line "
        return " ".join(f"{name}{n}" for n in dict.fromkeys(found)) or self.path


@dataclass(frozen=True, slots=True)
class UopFile:
    """The cases of a file, and the comment at its head."""

    cases: tuple[FileCase, ...]
    comment: str = ""


def outputs(root: UOp) -> dict[int, UOp]:
    """The outputs of a program: the root, the members of a TUPLE, or the locations by slot."""
    if root.op is Op.TUPLE:
        return dict(enumerate(root.src))
    if root.dtype is not dtypes.void:
        return {0: root}
    return {slot: u for slot, u in slots_of(root).items() if u.addrspace is not None}


def encode_set(accepted: ElementSet, dtype: DType) -> str:
    """The text of a set: parts joined by |."""
    if accepted.any:
        return "any"
    parts = []
    for interval in accepted.intervals:
        ends = [print_literal(encode_scalar(b, dtype)) for b in interval]
        parts.append(ends[0] if ends[0] == ends[1] else f"[{','.join(ends)}]")
    if accepted.nan:
        parts.append("nan")
    parts += [print_literal(encode_scalar(b, dtype)) for b in accepted.nan_bits]
    return " | ".join(parts)


def decode_set(parts: Iterable[Literal], dtype: DType) -> ElementSet:
    """The union of parts: values, (lo, hi), `nan`, `nan:BITS`, `any`; MalformedError for others."""
    intervals: list[tuple[int, int]] = []
    nan_bits: list[int] = []
    nan = anything = False
    for part in parts:
        if isinstance(part, Word) and part == "any":
            anything = True
        elif isinstance(part, Word) and part == "nan" and dtype.is_float:
            nan = True
        elif isinstance(part, Word) and part.startswith("nan:"):
            nan_bits.append(_bits(part, dtype))
        else:
            intervals.append(_ends(part, dtype))
    return ElementSet(tuple(intervals), nan, tuple(nan_bits), anything)


def _ends(part: Literal, dtype: DType) -> tuple[int, int]:
    if not isinstance(part, tuple):
        bits = _bits(part, dtype)
        return bits, bits
    if len(part) != 2:
        raise MalformedError(f"expected [lo,hi], found a list of {len(part)}")
    low, high = (_bits(end, dtype) for end in part)
    if _rank(low, dtype) > _rank(high, dtype):
        raise MalformedError("expected lo <= hi, where -0 is below +0 and NaN stands apart")
    return low, high


def _bits(literal: Literal, dtype: DType) -> int:
    try:
        return decode_scalar(literal, dtype)
    except ValueError as error:
        raise MalformedError(str(error)) from None


def _rank(bits: int, dtype: DType) -> int:
    """The rank of an ordinary value in the total order."""
    if not dtype.is_float:
        return int(dtype.decode(bits))
    if dtype.format.is_nan(bits):
        raise MalformedError("expected lo <= hi, found a NaN as an end")
    sign = dtype.format.sign_bit
    return bits if bits < sign else sign - 1 - bits
