"""The interface of a target: its dtypes, its ops, and how it writes and runs kernels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from uop.compiler.runtime.device import Compiler, Device
from uop.spec.args import WmmaArg, arg_of
from uop.spec.dtype import DType
from uop.spec.errors import DeviceLacksError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

COPIES = (Op.CAST, Op.BITCAST, Op.WHERE)
"""Elementwise ops that copy: a target applies them to the bits of a dtype that it only stores."""


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """The vectors of a target."""

    size: int
    """The bytes of a register."""
    registers: int
    """The number of registers."""
    widths: tuple[int, ...]
    """The numbers of elements, in ascending order."""
    memory: AbstractSet[DType]
    """The dtypes of vectors that are loaded and stored."""
    has: Callable[[UOp], bool]
    """Whether the target has an elementwise op on vectors."""
    is_aligned: bool
    """Whether a vector in memory must be aligned to its own size."""


@dataclass(frozen=True, slots=True, eq=False)
class Target(ABC):
    """One device family: what it computes natively, what it emulates, and its language.

    A dtype in `emulated` is stored as its bits and computed in the dtype it maps to, rounded back
    at every node. Moves (LOAD, STORE, WHERE, BITCAST) of it stay bit copies.
    """

    name: str
    native: AbstractSet[DType]
    emulated: Mapping[DType, DType]
    ops: AbstractSet[Op]
    """The elementwise ops that the language has."""
    local_size: int
    """The work items of a group, the same for every launch: another size is another build of the
    kernel.
    """

    keeps_addresses: bool = field(default=False, kw_only=True)
    """Whether memory stays where it is from one launch to the next."""
    vectors: Vectors | None = field(default=None, kw_only=True)
    matrices: AbstractSet[WmmaArg] = field(default=frozenset(), kw_only=True)
    """Its matrix instructions."""
    warp: int = field(default=1, kw_only=True)
    """The number of work items that run in lockstep."""

    @abstractmethod
    def kernel(self, linear: UOp, name: str) -> str:
        """The text of one kernel: a function of its PARAMs in the order of their slots."""

    @abstractmethod
    def source(self, kernels: Sequence[str]) -> str:
        """Kernels as one complete source."""

    @abstractmethod
    def open(self) -> Device:
        """The device that runs such sources. UnsupportedError if there is none."""

    def compiler(self) -> Compiler:
        """The compiler of machine code for it, by default its device. UnsupportedError if there is
        none.
        """
        return self.open()

    def has_vector(self, u: UOp) -> bool:
        """Whether it has a node on vectors."""
        if self.vectors is None or u.op in (Op.LOAD, Op.STORE):
            return self.vectors is not None and u.src[0].dtype in self.vectors.memory
        return u.op in self.ops and self.vectors.has(u)

    def check_matrix(self, u: UOp) -> None:
        """UnsupportedError for a WMMA that it has no instruction for."""
        arg = arg_of(u, WmmaArg)
        if arg not in self.matrices:
            raise DeviceLacksError(
                f"{self.name} has no matrix instruction for WMMA m{arg.m}n{arg.n}k{arg.k} "
                f"{arg.dtype_in.name} to {arg.dtype_out.name}"
            )

    def vector_width(self, size: int, itemsize: int) -> int:
        """The longest vector that divides an axis of some size; 1 for none."""
        if self.vectors is None:
            return 1
        most = self.vectors.size // itemsize
        fitting = (n for n in self.vectors.widths if n <= most and size % n == 0)
        return max(fitting, default=1)

    @property
    def is_aligned(self) -> bool:
        """Whether a vector in memory must be aligned to its own size."""
        return self.vectors is not None and self.vectors.is_aligned

    def computes_as(self, dtype: DType) -> DType:
        """The dtype in which ALU ops on `dtype` are done; UnsupportedError where there is none."""
        if dtype in self.native:
            return dtype
        if dtype in self.emulated:
            return self.emulated[dtype]
        raise DeviceLacksError(f"{self.name} cannot compute in {dtype.name}")
