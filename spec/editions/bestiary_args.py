"""The arg classes of the bestiary that differ from those of the core."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from uop.spec.args import AddrSpace, Arg, Device
from uop.spec.dtype import DType
from uop.spec.ops.names import Op


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
    """`renumbered` is false before kernels are split: until then ids are of another kind."""

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
    """The total number of elements of a buffer."""

    size: int
    dtype: DType


@dataclass(frozen=True, slots=True)
class SlotArg(Arg):
    """A parameter of `size` elements, or of the shape in its operand."""

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
    """A variable by name; `v3` is the variable of slot 3."""

    name: str
    min: int
    max: int


@dataclass(frozen=True, slots=True)
class ViewArg(Arg):
    size: int
    offset: int
    dtype: DType


@dataclass(frozen=True, slots=True)
class GateArg(Arg):
    """Whether there is a gate, which is the last operand."""

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
class LanesOfBitsArg(Arg):
    """The bits of the constants of a vector."""

    bits: tuple[int, ...]
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
