"""The devices that kernels are compiled for, by name."""

from uop.compiler.targets.cuda import CUDA
from uop.compiler.targets.opencl import OPENCL
from uop.compiler.targets.target import Target
from uop.spec.errors import UnsupportedError

TARGETS: dict[str, Target] = {target.name: target for target in (OPENCL, CUDA)}


def target_named(name: str) -> Target:
    """The target of that name; UnsupportedError with the names there are."""
    if name not in TARGETS:
        raise UnsupportedError(f"no target {name}: expected one of {', '.join(TARGETS)}")
    return TARGETS[name]
