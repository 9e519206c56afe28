"""Who evaluates Tensors: nobody, until the front door installs an evaluator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from uop.spec.dtype import DType
from uop.spec.errors import UnsupportedError

if TYPE_CHECKING:
    from uop.spec.registry import Shape
    from uop.spec.uop import UOp


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """Contents of a Tensor: little-endian bytes in row-major order, or what an evaluator keeps."""

    dtype: DType
    shape: Shape
    data: Any


class Evaluator(Protocol):
    """What the front door installs."""

    def hold(self, data: object) -> Held | None:
        """A copy of an array of the evaluator's own kind; None for anything else."""

    def evaluate(self, root: UOp, inputs: Mapping[int, Held]) -> Held:
        """The value of a graph whose BUFFERs have these contents, by slot."""

    def array(self, held: Held) -> Any:
        """The contents as an array of the evaluator's own kind, with shape and `tobytes`."""


@dataclass(slots=True)
class _Installed:
    evaluator: Evaluator | None = None


# The front door installs for every thread, `using` for one context: both stand behind one variable.
_EVERYWHERE = _Installed()
_EVALUATOR: ContextVar[_Installed] = ContextVar("uop evaluator", default=_EVERYWHERE)


def install(evaluator: Evaluator) -> None:
    """Evaluate Tensors by this one wherever no other is in use."""
    _EVERYWHERE.evaluator = evaluator


@contextmanager
def using(evaluator: Evaluator | None) -> Iterator[None]:
    """Evaluate Tensors by this one (None: by nobody) inside the block."""
    token = _EVALUATOR.set(_Installed(evaluator))
    try:
        yield
    finally:
        _EVALUATOR.reset(token)


def installed() -> Evaluator | None:
    """The evaluator in use, None where there is none."""
    return _EVALUATOR.get().evaluator


def evaluator() -> Evaluator:
    """The evaluator in use. UnsupportedError where there is none."""
    found = installed()
    if found is None:
        raise UnsupportedError(
            "no evaluator is installed: import Tensor from uop, or name one by `using`"
        )
    return found
