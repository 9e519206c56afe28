"""The table of rules: what each op of ONNX is on Tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from inspect import Parameter, signature
from typing import Any, TypeVar

import numpy as np

from uop.conformance.adapters.onnx.library import stored
from uop.interpreter.footprint import limit
from uop.interpreter.numeric.storage import Array, to_bits
from uop.spec.errors import UnsupportedError
from uop.spec.frontend.compositions import full
from uop.spec.frontend.tensor import Tensor

Result = Tensor | Sequence[Tensor | None]
Body = Callable[..., list[Tensor]]
"""A subgraph of a node: takes its inputs, and gives its outputs."""

F = TypeVar("F", bound=Callable[..., Result])

Known = Callable[[Tensor], Array]
"""What a Tensor holds that depends on no input; an UnsupportedError for another one."""

OUTPUTS, KNOWN, ABOUT = "outputs", "known", "about"
"""The parameters of a rule that are no attributes: how many outputs are used, a `Known`, and
attributes that several ops share, as one object.
"""


@dataclass(frozen=True, slots=True)
class Rule:
    """The meaning of an op from a version of its operator set on.

    `apply` takes the inputs in order, None for one that is absent, and the attributes by name.
    """

    since: int
    apply: Callable[..., Result]
    known: frozenset[int]
    """The inputs that it needs as arrays: what they hold decides shapes."""
    named: frozenset[str]
    """The names that it takes besides the inputs."""
    about: type | None
    """A dataclass of attributes that it takes as one object."""
    moved: Sequence[str]
    """The attributes that newer versions have as inputs: they come behind the other inputs."""

    def __call__(
        self, inputs: Sequence[object], attributes: Mapping[str, Any], outputs: int, known: Known
    ) -> Sequence[Tensor | None]:
        """The outputs; UnsupportedError for an attribute that the rule does not know."""
        shared = () if self.about is None else [field.name for field in fields(self.about)]
        strange = sorted(attributes.keys() - self.named - {*shared, *self.moved})
        if strange:
            raise UnsupportedError(f"attribute {strange[0]}")
        more: dict[str, Any] = {OUTPUTS: outputs, KNOWN: known}
        if self.about is not None:
            more[ABOUT] = self.about(**{n: v for n, v in attributes.items() if n in shared})
        more |= {name: value for name, value in attributes.items() if name not in shared}
        arrays = (np.asarray(attributes[n]) if n in attributes else None for n in self.moved)
        named = {name: value for name, value in more.items() if name in self.named}
        result = self.apply(*inputs, *arrays, **named)
        return [result] if isinstance(result, Tensor) else result


RULES: dict[tuple[str, str], list[Rule]] = {}
"""The rules by domain and op, the newest version first."""


def rule(
    *ops: str,
    since: int = 1,
    known: Sequence[int] = (),
    domain: str = "",
    about: type | None = None,
    moved: Sequence[str] = (),
) -> Callable[[F], F]:
    """Enter a function as the rule of these ops."""

    def enter(apply: F) -> F:
        names = signature(apply).parameters.values()
        named = frozenset(p.name for p in names if p.kind is Parameter.KEYWORD_ONLY)
        for op in ops:
            entries = RULES.setdefault((domain, op), [])
            entries.append(Rule(since, apply, frozenset(known), named, about, moved))
            entries.sort(key=lambda entry: -entry.since)
        return apply

    return enter


def rule_of(domain: str, op: str, opset: int) -> Rule | None:
    """The rule of an op in a version; None if there is none."""
    return next((r for r in RULES.get((domain, op), ()) if r.since <= opset), None)


def constant(array: Array) -> Tensor:
    """An array as a Tensor; one whose elements are all equal becomes a CONST."""
    dtype, flat = stored(array), array.reshape(-1)
    bits = to_bits(flat)
    # A CONST would lose the bits of a NaN.
    if flat.size and (bits == bits[0]).all() and flat[0] == flat[0]:
        return full(array.shape, flat[0].item(), dtype)
    return Tensor(array)


def count_of(number: float) -> int:
    """A number of elements that a model states. UnsupportedError for more than memory may hold."""
    most = limit() // np.dtype(np.int64).itemsize
    if not number <= most:
        raise UnsupportedError(f"expected at most {most:,} elements, found {number:,}")
    return max(math.ceil(number), 0)


def counted(number: float) -> Array:
    """0, 1, ... as int64, of which a model states the number. Raises the error of `count_of`."""
    return np.arange(count_of(number))
