"""What a device can do, as data: the dtypes it computes in and those it only stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from uop.compiler.targets.cstyle import SPELLED, Dialect
from uop.spec.dtype import DTYPES, FLOATS, DType, dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.ops.names import Op

SMALL_FLOATS = tuple(dtype for dtype in FLOATS if dtype.bits < 32)


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """One device family: what it computes natively, what it emulates, and its dialect of C.

    A dtype in `emulated` is stored as its bits and computed in the dtype it maps to, rounded back
    at every node. Moves (LOAD, STORE, WHERE, BITCAST) of it stay bit copies.
    """

    name: str
    dialect: Dialect
    native: frozenset[DType]
    emulated: Mapping[DType, DType]
    ops: frozenset[Op]
    local_size: int
    """Work items of a group, for every launch: another size is another build of the kernel."""

    def computes_as(self, dtype: DType) -> DType:
        """The dtype in which ALU ops on `dtype` are done; UnsupportedError where there is none."""
        if dtype in self.native:
            return dtype
        if dtype in self.emulated:
            return self.emulated[dtype]
        raise UnsupportedError(f"{self.name} cannot compute in {dtype.name}")


NATIVE = frozenset(DTYPES.values()) - frozenset(SMALL_FLOATS) - {dtypes.void}
"""The dtypes that every C dialect here computes in itself."""

EMULATED: Mapping[DType, DType] = dict.fromkeys(SMALL_FLOATS, dtypes.float32)
"""float32 keeps twice the digits of each of these and two more: rounding its correctly rounded +,
*, / and sqrt once more gives the correctly rounded result."""


def c_target(name: str, dialect: Dialect, local_size: int) -> Target:
    """A target with 64-bit floats and integers whose small floats live as their bits."""
    return Target(name, dialect, NATIVE, EMULATED, SPELLED, local_size)
