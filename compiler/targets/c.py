"""A target whose language is a dialect of C."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from math import inf, prod

from uop.compiler.runtime.device import Compiler, Device
from uop.compiler.stages.render.stage import render_kernel, render_source
from uop.compiler.stages.render.statements import local_memory, statements
from uop.compiler.targets.cstyle import SPELLINGS, Dialect
from uop.compiler.targets.prelude import SMALL
from uop.compiler.targets.target import Target
from uop.spec.dtype import DTYPES, DType, dtypes
from uop.spec.errors import DeviceLacksError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

NATIVE = frozenset(DTYPES.values()) - {*SMALL, dtypes.void}
"""The dtypes in which every C dialect computes natively."""
EMULATED: Mapping[DType, DType] = dict.fromkeys(SMALL, dtypes.float32)
"""The dtypes that are computed in float32. It has twice the digits of each and two more: so
rounding the correctly rounded +, *, / and sqrt once more is correctly rounded too.
"""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CTarget(Target):
    """A device whose kernels are C in its dialect, with 64-bit floats and integers. Its small
    floats live as their bits.
    """

    native: AbstractSet[DType] = NATIVE
    emulated: Mapping[DType, DType] = field(default_factory=lambda: EMULATED)
    ops: AbstractSet[Op] = field(default_factory=SPELLINGS.keys)
    dialect: Dialect
    opener: Callable[[], Device]
    compiler_opener: Callable[[], Compiler] | None = None
    """Opens a compiler that needs no device."""
    most_shared: float = inf
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
        return self.opener()

    def compiler(self) -> Compiler:
        return (self.compiler_opener or self.opener)()
