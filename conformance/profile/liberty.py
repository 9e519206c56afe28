"""Shows a liberty by an example: a program as an expression, its values, what strict gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from uop.conformance.profile.probe import Operand, Witness, bits_of
from uop.conformance.suite.values import array
from uop.interpreter.numeric.storage import Array, to_bits
from uop.spec.args import ConstArg, ParamArg, ReduceArg
from uop.spec.dtype import DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.text.expression import OPERATORS
from uop.spec.uop import UOp

ORDINARY = (1e-9, 1e9)
"""The magnitudes that everyday programs compute with; zero is another such value."""
NAMES = "xyz"
LEGIBLE = 3
"""How much longer a number may be without an exponent."""
SHOWN = 4
"""The most elements of an operand that an example shows."""


@dataclass(frozen=True, slots=True)
class Example:
    """One element of a witness on which a backend takes a liberty, as text."""

    witness: Witness
    text: str
    is_ordinary: bool
    """Whether its operands and constants are ordinary numbers."""
    gives_ordinary: bool
    """Whether what the backend and the strict language give are ordinary numbers too."""

    @property
    def rank(self) -> tuple[bool, bool, int]:
        """The order of examples, the one to show first: ordinary and short ones precede."""
        return not self.is_ordinary, not self.gives_ordinary, len(self.text)


def first_example(examples: Iterable[Example]) -> Example | None:
    """The smallest example on ordinary values where there is one, else of all; None of none."""
    return min(examples, key=lambda example: example.rank, default=None)


def example_of_value(witness: Witness, element: int, bits: int, strict: Operand) -> Example:
    """The example of an element that is not what the strict language gives."""
    dtype = witness.root.dtype
    results = [_scalar(b, dtype) for b in (bits, bits_of(strict, dtype))]
    found, expected = map(_number, results)
    ordinary = all(map(_is_ordinary, results))
    return _example(witness, element, f"is {found}, strict {expected}", ordinary)


def example_of_end(witness: Witness, element: int) -> Example:
    """The example of a program that ends instead of giving a value."""
    return _example(witness, element, f"{witness.ended}, strict {witness.otherwise}", False)


def _example(witness: Witness, element: int, outcome: str, gives_ordinary: bool) -> Example:
    root = witness.root
    params = {u.arg.slot: u for u in root.toposort() if isinstance(u.arg, ParamArg)}
    names = {slot: NAMES[k] for k, slot in enumerate(sorted(params))}
    operands = {
        slot: _operand(witness.inputs[slot], element, u.shape == root.shape)
        for slot, u in sorted(params.items())
    }
    values = ", ".join(f"{names[slot]} = {_numbers(a)}" for slot, a in operands.items())
    kind = next(u.dtype for u in params.values())
    of = "" if kind in (dtypes.float32, dtypes.int32) else f"{kind.name} "
    read = [*(x for a in operands.values() for x in a.reshape(-1)), *_constants(root)]
    return Example(
        witness,
        f"{_expression(root, names)} for {of}{values} {outcome}",
        all(map(_is_ordinary, read)),
        gives_ordinary,
    )


def _expression(u: UOp, names: Mapping[int, str]) -> str:
    """A program as `uop eval` reads it, but for a PAD and a REDUCE, which name no axes."""
    if isinstance(u.arg, ConstArg):
        return _number(_scalar(u.arg.bits, u.dtype))
    if isinstance(u.arg, ParamArg):
        return names[u.arg.slot]
    operands = [s for s in u.src if s.dtype is not dtypes.index]
    parts = [_expression(s, names) for s in operands]
    if u.op in OPERATORS and len(parts) == 2:
        within = (
            f"({part})" if s.op in OPERATORS else part
            for s, part in zip(operands, parts, strict=True)
        )
        return f" {OPERATORS[u.op]} ".join(within)
    if u.op is Op.NEG:
        return f"-{parts[0]}"
    name = u.dtype.name if u.op is Op.CAST else u.op.name.lower()
    fold = [u.arg.op.name.lower()] if isinstance(u.arg, ReduceArg) else []
    return f"{name}({', '.join([*fold, *parts])})"


def _operand(a: Array, element: int, alike: bool) -> Array:
    """The element of an operand that is shaped like the result (`alike`), else all of them."""
    return a.reshape(-1)[element] if alike else a.reshape(-1)


def _numbers(a: Array) -> str:
    if not a.shape:
        return _number(a)
    more = ["..."] * (a.size > SHOWN)
    return f"[{', '.join([*map(_number, a[:SHOWN]), *more])}]"


def _constants(root: UOp) -> Iterator[Array]:
    return (
        _scalar(u.arg.bits, u.dtype)
        for u in root.toposort()
        if isinstance(u.arg, ConstArg) and u.dtype is not dtypes.index
    )


def _scalar(bits: int, dtype: DType) -> Array:
    scalar: Array = array(dtype, (bits,))[0]
    return scalar


def _is_ordinary(x: Array) -> bool:
    """Whether a number is no NaN, infinity, -0.0 or extreme."""
    if x == 0:
        return not to_bits(x.reshape(1))[0]
    least, most = ORDINARY
    return bool(least <= abs(float(x)) <= most)


def _number(x: Array) -> str:
    """The decimals that identify a number in its dtype: `1`, `0.5`, `1e8`."""
    if x.dtype.kind == "b":
        return str(bool(x)).lower()
    if x.dtype.kind in "iu":
        return str(int(x))
    if not np.isfinite(x):
        return str(float(x))
    if x.dtype.itemsize < np.dtype(np.float32).itemsize:
        return _shorter(np.float64(str(x)))
    return _shorter(x.dtype.type(x))


def _shorter(x: np.floating[Any]) -> str:
    plain = np.format_float_positional(x, trim="-")
    scaled = np.format_float_scientific(x, trim="-", exp_digits=1).replace("e+", "e")
    return scaled if len(scaled) + LEGIBLE < len(plain) else plain
