"""The typed args of the ops: one frozen dataclass each, hashable and compared by value."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum
from numbers import Rational
from reprlib import repr as _repr
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from uop.spec.conditions.labels import Condition, invalid
from uop.spec.dtype import DType, Number, Scalar, dtypes
from uop.spec.ops.names import Op

if TYPE_CHECKING:
    from uop.spec.registry import Node

Device = str | tuple[str, ...] | None
A = TypeVar("A", bound="Arg")
B = TypeVar("B", bound="Arg")


class AddrSpace(Enum):
    """The memory of a location."""

    __hash__ = object.__hash__  # As Op has.

    GLOBAL = "GLOBAL"
    LOCAL = "LOCAL"
    REG = "REG"


class AxisType(Enum):
    """What a RANGE iterates as; the value is its letter in the spec's table."""

    GLOBAL = "g"
    LOCAL = "l"
    WARP = "w"
    THREAD = "t"
    LOOP = "L"
    REDUCE = "R"
    GROUP_REDUCE = "G"
    UPCAST = "u"
    UNROLL = "r"


class PadFill(Enum):
    """The value of the elements that PAD adds (D-002)."""

    INVALID = "INVALID"
    ZERO = "ZERO"


@dataclass(frozen=True, slots=True)
class Arg:
    """The base of all args. InvalidError `ARG.c1` for a field of a wrong type."""

    def __post_init__(self) -> None:
        for name, spelled, classes, items in _FIELDS.get(self.__class__) or _fields_of(
            self.__class__
        ):
            value = getattr(self, name)
            if value.__class__ not in classes or (items is not None and not _holds(value, items)):
                where = f"{self.__class__.__name__}.{name}: {spelled}"
                raise invalid("ARG.c1", where, _repr(value))


@dataclass(frozen=True, slots=True)
class ParamArg(Arg):
    """A PARAM with a range from min to max is a variable, which sizes may use (D-074)."""

    slot: int
    dtype: DType
    device: Device = None
    addrspace: AddrSpace | None = None
    min: int | None = None
    max: int | None = None


@dataclass(frozen=True, slots=True)
class BufferArg(Arg):
    slot: int
    dtype: DType
    device: Device = None
    addrspace: AddrSpace = AddrSpace.GLOBAL


@dataclass(frozen=True, slots=True)
class ConstArg(Arg):
    """A constant, held as bits (D-018) so that 0.0 and -0.0 differ and a NaN equals itself."""

    bits: int
    dtype: DType

    @classmethod
    def of(cls, value: Number, dtype: DType) -> ConstArg:
        """Encode a value, rounded once into the dtype.

        ValueError for an integer outside the dtype, InvalidError for a value that is no number
        and for a dtype that is no DType.
        """
        if not isinstance(value, (int, float, Rational)) or dtype.__class__ is not DType:
            raise invalid("CONST.number", "CONST", f"{_repr(value)} of {_repr(dtype)}")
        return cls(dtype.encode(value), dtype)

    @property
    def value(self) -> Scalar:
        return self.dtype.decode(self.bits)


@dataclass(frozen=True, slots=True)
class BinaryArg(Arg):
    data: bytes


@dataclass(frozen=True, slots=True)
class PermuteArg(Arg):
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FlipArg(Arg):
    flags: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class PadArg(Arg):
    fill: PadFill = PadFill.INVALID


@dataclass(frozen=True, slots=True)
class ReplicatedArg(Arg):
    axes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SliceArg(Arg):
    """The number of elements of a SLICE and their dtype."""

    size: int
    dtype: DType


@dataclass(frozen=True, slots=True)
class DTypeArg(Arg):
    """The target dtype of CAST and BITCAST."""

    dtype: DType


@dataclass(frozen=True, slots=True)
class ReduceArg(Arg):
    op: Op
    axes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class GetTupleArg(Arg):
    idx: int


@dataclass(frozen=True, slots=True)
class LoadArg(Arg):
    """The target of a LOAD (D-004): a device and address space, by default those of the operand."""

    device: Device = None
    addrspace: AddrSpace | None = None


@dataclass(frozen=True, slots=True)
class RangeArg(Arg):
    """The id distinguishes loops with equal bounds (D-008)."""

    id: int
    axis_type: AxisType = AxisType.LOOP


@dataclass(frozen=True, slots=True)
class SpecialArg(Arg):
    name: str


@dataclass(frozen=True, slots=True)
class WmmaArg(Arg):
    """A matrix instruction: (m, k) @ (k, n) in dtype_in, plus (m, n) in dtype_out."""

    m: int
    n: int
    k: int
    dtype_in: DType
    dtype_out: DType


@dataclass(frozen=True, slots=True)
class GetAddrArg(Arg):
    device: str


@dataclass(frozen=True, slots=True)
class InsArg(Arg):
    """The name of a machine instruction, and the dtype and shape of its result (void for none)."""

    name: str
    dtype: DType = dtypes.void
    shape: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CustomArg(Arg):
    """Source text with {k} for operand k, and the dtype and shape of its result (void for none)."""

    fmt: str
    dtype: DType = dtypes.void
    shape: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CustomFunctionArg(Arg):
    name: str


@dataclass(frozen=True, slots=True)
class SourceArg(Arg):
    text: str


@dataclass(frozen=True, slots=True)
class LanesArg(Arg):
    """The axes of an expansion with the size of each, in row-major order."""

    axes: tuple[int, ...]
    factors: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StageArg(Arg):
    """The memory that a STAGE stores to; no pass may inline it again unless `removable`."""

    device: Device = None
    addrspace: AddrSpace = AddrSpace.GLOBAL
    removable: bool = True


class Unit(Enum):
    """The unit of an offset."""

    ELEMENTS = "ELEMENTS"
    BYTES = "BYTES"


@dataclass(frozen=True, slots=True)
class PtrAddArg(Arg):
    unit: Unit


@dataclass(frozen=True, slots=True)
class AllReduceArg(Arg):
    op: Op
    device: Device


@dataclass(frozen=True, slots=True)
class UniqueArg(Arg):
    id: int


@dataclass(frozen=True, slots=True)
class PlaceArg(Arg):
    """A device, or several."""

    device: Device


@overload
def arg_of(u: Node, kind: type[A], /) -> A: ...
@overload
def arg_of(u: Node, kind: type[A], other: type[B], /) -> A | B: ...


def arg_of(u: Node, /, *kinds: type[Arg]) -> Arg:
    """The arg of a node as one of these classes; InvalidError `OP.arg` for any other arg."""
    arg = u.arg
    if isinstance(arg, kinds):
        return arg
    expected = " or ".join(kind.__name__ for kind in kinds)
    raise Condition(f"{u.op.name}.arg", f"arg is {expected}").error(u.op.name, _repr(arg))


class _Items(NamedTuple):
    """The types of the items of a tuple: their classes, and for nested tuples the inner items."""

    classes: frozenset[type]
    items: _Items | None


class _Field(NamedTuple):
    """A field of an arg: its name, its annotation, and the classes that the annotation allows."""

    name: str
    spelled: str
    classes: frozenset[type]
    items: _Items | None


_FIELDS: dict[type[Arg], tuple[_Field, ...]] = {}


def _fields_of(kind: type[Arg]) -> tuple[_Field, ...]:
    """The fields of an arg class, read from its annotations on first use."""
    hints = get_type_hints(kind)
    found = ((f, _classes(hints[f.name])) for f in fields(kind))
    _FIELDS[kind] = tuple(_Field(f.name, str(f.type), *allowed) for f, allowed in found)
    return _FIELDS[kind]


def _classes(hint: Any) -> _Items:
    """The classes that a type annotation allows; bool does not count as int."""
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    classes = frozenset(get_origin(m) or (NoneType if m is None else m) for m in members)
    of_tuples = [_classes(get_args(m)[0]) for m in members if get_origin(m) is tuple]
    return _Items(classes, of_tuples[0] if of_tuples else None)


def _holds(value: Any, items: _Items) -> bool:
    """Whether the items of a tuple have the allowed types; true for anything but a tuple."""
    if value.__class__ is not tuple:
        return True
    classes, deeper = items
    for v in value:
        if v.__class__ not in classes or (deeper is not None and not _holds(v, deeper)):
            return False
    return True
