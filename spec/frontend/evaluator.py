"""The evaluators of Tensors: their protocol, their names, and which one is in use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from uop.spec.conditions.labels import invalid
from uop.spec.dtype import DType
from uop.spec.errors import UnsupportedError
from uop.spec.nearest import did_you_mean

if TYPE_CHECKING:
    from uop.spec.registry import Shape
    from uop.spec.uop import UOp


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """The contents of a Tensor: little-endian bytes in row-major order, or an evaluator's data."""

    dtype: DType
    shape: Shape
    data: Any


class Evaluator(Protocol):
    """Evaluates Tensors; `import uop` installs one."""

    def hold(self, data: object) -> Held | None:
        """A copy of an array of the evaluator's array type; None for anything else."""

    def evaluate(self, root: UOp, inputs: Mapping[int, Held]) -> Held:
        """The value of a graph; `contents` are those of its BUFFERs by slot."""

    def array(self, held: Held) -> Any:
        """The contents as an array of the evaluator's array type, with shape and `tobytes`; it
        cannot be written to.
        """

    def text(self, held: Held) -> str:
        """The contents for a reader: nested lists, shortened where they are long."""

    def adopt(self, data: object) -> Held:
        """The contents of an object that speaks DLPack, in place if they are in row-major order."""

    def lend(self, held: Held, options: Mapping[str, Any]) -> Any:
        """A capsule of DLPack: of the contents in place if the consumer knows read-only memory,
        else of a copy.
        """


@dataclass(slots=True)
class _Installed:
    evaluator: Evaluator | None = None


# `install` sets the evaluator for all threads, `using` for one context.
_EVERYWHERE = _Installed()
_EVALUATOR: ContextVar[_Installed] = ContextVar("uop evaluator", default=_EVERYWHERE)


def install(evaluator: Evaluator) -> None:
    """Set the default evaluator of all threads."""
    _EVERYWHERE.evaluator = evaluator


@contextmanager
def using(evaluator: Evaluator | None) -> Iterator[None]:
    """Set the evaluator inside the block; None for no evaluation."""
    token = _EVALUATOR.set(_Installed(evaluator))
    try:
        yield
    finally:
        _EVALUATOR.reset(token)


EVALUATORS: dict[str, Callable[[], Evaluator]] = {}
"""The constructor of each evaluator, by name."""


def backend(name: str) -> AbstractContextManager[None]:
    """Evaluate Tensors inside the block by the evaluator of this name; InvalidError if unknown."""
    if name not in EVALUATORS:
        known = f"expected one of {', '.join(EVALUATORS)}"
        found = f"{name!r}: {known}{did_you_mean(str(name), EVALUATORS)}"
        raise invalid("EVALUATOR.name", "backend", found)
    return using(EVALUATORS[name]())


def installed() -> Evaluator | None:
    """The evaluator in use, or None."""
    return _EVALUATOR.get().evaluator


def evaluator() -> Evaluator:
    """The evaluator in use; UnsupportedError if there is none."""
    found = installed()
    if found is None:
        raise UnsupportedError(
            "no evaluator is installed: import Tensor from uop, or name one by `using`"
        )
    return found
