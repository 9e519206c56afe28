"""The arg classes of the bestiary that differ from those of the core, and its conditions."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum
from typing import TypeVar

from uop.spec.args import AddrSpace, Arg, Device, Unit
from uop.spec.dtype import DTYPES, DType
from uop.spec.errors import MalformedError
from uop.spec.ops.names import Op
from uop.spec.text.codec import decode_fields, encode_arg
from uop.spec.text.literal import Line, Literal, Word, print_literal
from uop.spec.text.program import read_fields

A = TypeVar("A", bound=Arg)


def _dtype_name(dtype: DType) -> str:
    """The name of a dtype as the document writes it: Float32, UInt8, FP8E4M3."""
    name = dtype.name
    if name.startswith("fp8"):
        return name.upper()
    initials = 2 if name.startswith(("uint", "bfloat")) else 1
    return name[:initials].upper() + name[initials:]


class BestiaryAxisType(Enum):
    """The types of a RANGE; the value is the priority: lower ones are outer loops."""

    PLACEHOLDER = (-3, "placeholder")
    LOOP = (-1, "loop")
    GLOBAL = (0, "global")
    THREAD = (0, "thread")
    WARP = (1, "warp")
    LOCAL = (2, "local")
    GROUP_REDUCE = (2, "group reduce")
    UPCAST = (3, "upcast")
    REDUCE = (4, "reduce")
    UNROLL = (5, "unroll")

    @property
    def priority(self) -> int:
        return self.value[0]


@dataclass(frozen=True, slots=True)
class AxisArg(Arg):
    """`renumbered` is false before kernels are split; until then ids are separate ones."""

    axis_id: int
    axis_type: BestiaryAxisType = BestiaryAxisType.LOOP
    renumbered: bool = True


@dataclass(frozen=True, slots=True)
class ReduceAxisArg(Arg):
    reduce_op: Op
    axes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReduceOpArg(Arg):
    reduce_op: Op


@dataclass(frozen=True, slots=True)
class SizeArg(Arg):
    """A buffer by its total number of elements, or by its shape."""

    dtype: DType
    size: int | None = None
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class SlotArg(Arg):
    """A buffer of `size` elements. With a shape as operand it is a value, or memory of
    `addrspace`.
    """

    slot: int
    dtype: DType
    size: int | None = None
    device: Device = None
    addrspace: AddrSpace | None = None


@dataclass(frozen=True, slots=True)
class DefineArg(Arg):
    """The memory of a workgroup or a work item."""

    id: int
    size: int
    dtype: DType


@dataclass(frozen=True, slots=True)
class VariableArg(Arg):
    """A variable by name; this project adds the slot."""

    name: str
    min: int
    max: int
    slot: int | None = None


@dataclass(frozen=True, slots=True)
class ViewArg(Arg):
    """The dtype is that of the buffer unless the text gives one."""

    size: int
    offset: int
    dtype: DType | None = None


@dataclass(frozen=True, slots=True)
class OffsetArg(Arg):
    """The unit of the offset of a pointer: bytes, unless this project says elements."""

    unit: Unit = Unit.BYTES


@dataclass(frozen=True, slots=True)
class GateArg(Arg):
    """Whether the last operand is a gate."""

    gated: bool = False


@dataclass(frozen=True, slots=True)
class CallArg(Arg):
    """Annotations of a call, without effect on its meaning."""

    name: str | None = None
    grad_tag: str | None = None
    metadata: tuple[str, ...] = ()
    precompile: bool = False
    precompile_backward: bool = False


@dataclass(frozen=True, slots=True)
class KernelArg(Arg):
    """Annotations of the SINK of a kernel."""

    info: str | None = None


@dataclass(frozen=True, slots=True)
class ElementArg(Arg):
    index: int


@dataclass(frozen=True, slots=True)
class CodeArg(Arg):
    code: str


@dataclass(frozen=True, slots=True)
class PositionsArg(Arg):
    indices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ValuesArg(Arg):
    """The constants of a vector, as literals of their dtype."""

    values: tuple[bool | int | Word, ...]
    dtype: DType


@dataclass(frozen=True, slots=True)
class UnrollAxesArg(Arg):
    """Pairs of an axis and its factor."""

    unroll_axes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class UpcastRangesArg(Arg):
    """Pairs of an axis and its factor."""

    upcast_ranges: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class TensorCoreArg(Arg):
    """A matrix instruction. The fields after the dtypes name it and place its lanes."""

    dims: tuple[int, ...]
    dtype_in: DType
    dtype_out: DType
    name: str = ""
    device: str = ""
    threads: int = 32
    upcast_a: tuple[tuple[int, ...], ...] = ()
    upcast_b: tuple[tuple[int, ...], ...] = ()
    upcast_c: tuple[tuple[int, ...], ...] = ()
    reduce_axes: tuple[tuple[int, ...], ...] = ()
    tile_grid: tuple[int, ...] = (1, 1)


@dataclass(frozen=True, slots=True)
class AxesArg(Arg):
    axes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FlaggedArg(Arg):
    axes: tuple[bool, ...]


SPELLING = {
    **{_dtype_name(dtype): name for name, dtype in DTYPES.items()},
    **{"".join(part.capitalize() for part in t.name.split("_")): t.name for t in BestiaryAxisType},
    **{space.name.capitalize(): space.name for space in AddrSpace},
    **{op.name.capitalize(): op.name for op in (Op.ADD, Op.MUL, Op.MAX, Op.MIN)},
}
"""The names of types and folds in the document's case, each with that of the core."""


def noted(arg: Arg, *but: str) -> str | None:
    """The fields of an arg that differ from the default, as a tag; `but` leaves some out."""
    found = {f.name: getattr(arg, f.name) for f in fields(arg) if f.name not in but}
    defaults = {f.name: f.default for f in fields(arg)}
    written = encode_arg(arg) or {}
    said = [name for name, value in found.items() if value != defaults[name]]
    text = ", ".join(f"{name}={print_literal(written[name])}" for name in said)
    return f"{{{text}}}" if text else None


def from_note(kind: type[A], tag: str, **more: Literal) -> A | None:
    """The arg of a tag that `noted` made; None for another tag."""
    try:
        line = Line(tag)
        literals = read_fields(line)
        line.need_end()
        arg = None if literals is None else decode_fields(kind.__name__, kind, more | literals)
    except MalformedError:
        return None
    return arg if isinstance(arg, kind) else None


_DEVICE = "the device is a DEVICE"
_SIZE = "size is 0 or more"
_SIZES = "a number for each axis"
_PAIRS = "pairs of an axis and a factor"

TITLES = {
    "ALLREDUCE.device": _DEVICE,
    "BUFFER.unique": "operands are a UNIQUE or LUNIQUE, and a DEVICE",
    "BUFFER.number": "every BUFFER has a UNIQUE, or none does",
    "BUFFER.size": "a size of 0 or more, or a shape",
    "CAT.sources": "sources are vectors or scalars",
    "CONTRACT.axes": _PAIRS,
    "COPY.device": _DEVICE,
    "DEFINE_LOCAL.size": _SIZE,
    "DEFINE_REG.size": _SIZE,
    "LOAD.index": "index is an INDEX of the buffer",
    "LOAD.alt": "an alt belongs to an INDEX with a gate",
    "PAD.sizes": _SIZES,
    "PARAM.place": "one size or shape, at most one device",
    "PARAM.device": _DEVICE,
    "PARAM.size": _SIZE,
    "PROGRAM.device": _DEVICE,
    "PROGRAM.stage": "SINK, then LINEAR, SOURCE and PROGRAM_BINARY in this order",
    "SHRINK.sizes": _SIZES,
    "UNROLL.axes": _PAIRS,
    "DEFINE_VAR.number": "every variable says its slot, or none does",
    "VCONST.values": "values are of the dtype",
    "WMMA.upcast": "the factors of a fragment's axes multiply to its elements",
    "VECTORIZE.elements": "elements are scalars",
}
"""What must hold of the words besides the constraints of the core nodes, by label."""
