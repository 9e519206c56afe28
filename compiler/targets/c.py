"""A target whose language is a dialect of C."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from math import inf, prod
from typing import Any, cast

from uop.compiler.runtime.device import Compiler, Device
from uop.compiler.stages.render.stage import render_kernel, render_source
from uop.compiler.stages.render.statements import local_memory, statements
from uop.compiler.targets.cstyle import SPELLINGS, Dialect
from uop.compiler.targets.target import Target, Vectors
from uop.spec.args import WmmaArg
from uop.spec.dtype import DTYPES, FLOATS, DType, dtypes
from uop.spec.errors import DeviceLacksError
from uop.spec.uop import UOp


@dataclass(frozen=True, slots=True, eq=False)
class CTarget(Target):
    """A device whose kernels are C, in its dialect."""

    dialect: Dialect
    opener: Callable[[], Any]
    compiler_opener: Callable[[], Any] | None = None
    """Opens a compiler that needs no device."""
    most_shared: float = field(default=inf, kw_only=True)
    """The bytes of LOCAL memory of a group, where all devices have as many."""

    def kernel(self, linear: UOp, name: str) -> str:
        """As in `Target`; DeviceLacksError for more LOCAL memory than a group has."""
        self.check(linear, name)
        return render_kernel(linear, name, self.dialect)

    def check(self, linear: UOp, name: str) -> None:
        """Raise the errors of `kernel`, for a kernel that is rendered in a bundle."""
        shared = sum(prod(u.shape) * u.dtype.itemsize for u in local_memory(linear))
        if shared > self.most_shared:
            what = f"{name}: {shared:,} bytes of LOCAL memory"
            raise DeviceLacksError(
                f"{what}, {self.name} has at most {self.most_shared:,} in a group"
            )
        statements(linear, self.dialect)  # cached for the bundle

    def source(self, kernels: Sequence[str]) -> str:
        return render_source(kernels, self.dialect)

    def open(self) -> Device:
        return cast(Device, self.opener())

    def compiler(self) -> Compiler:
        return cast(Compiler, (self.compiler_opener or self.opener)())


SMALL_FLOATS = tuple(dtype for dtype in FLOATS if dtype.bits < 32)

NATIVE = frozenset(DTYPES.values()) - frozenset(SMALL_FLOATS) - {dtypes.void}
"""The dtypes in which every C dialect computes natively."""

EMULATED: Mapping[DType, DType] = dict.fromkeys(SMALL_FLOATS, dtypes.float32)
"""The dtypes that are computed in float32. It has twice the digits of each and two more: so
rounding the correctly rounded +, *, / and sqrt once more is correctly rounded too.
"""


def c_target(
    name: str,
    dialect: Dialect,
    opener: Callable[[], Any],
    local_size: int,
    *,
    keeps_addresses: bool,
    vectors: Vectors | None = None,
    matrices: AbstractSet[WmmaArg] = frozenset(),
    most_shared: float = inf,
    warp: int = 1,
    compiler: Callable[[], Any] | None = None,
) -> CTarget:
    """A target with 64-bit floats and integers whose small floats live as their bits."""
    ops = SPELLINGS.keys()
    numbers = name, NATIVE, EMULATED, ops, local_size
    return CTarget(
        *numbers,
        dialect,
        opener,
        compiler,
        keeps_addresses=keeps_addresses,
        vectors=vectors,
        matrices=matrices,
        most_shared=most_shared,
        warp=warp,
    )
