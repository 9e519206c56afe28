"""Parses profiles, and lists the knobs and their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args, get_type_hints

# Imported to enter the declarations.
from uop.spec import uop  # noqa: F401
from uop.spec.dtype import FLOATS, DType, dtypes
from uop.spec.errors import UopError
from uop.spec.latitude import OPS_OF, STRICT, Profile
from uop.spec.nearest import did_you_mean
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS


class ProfileError(UopError):
    """Text that is no profile: names the knob, the expected values and the actual one."""


def parse_profile(text: str) -> Profile:
    """The inverse of `str(profile)`."""
    if text.strip() == "strict":
        return STRICT
    if not text.strip():
        raise ProfileError("profile: expected strict, or knob=value; found nothing")
    knobs: dict[str, str] = {}
    for word in text.split():
        name, equals, value = word.partition("=")
        if not equals or name in knobs:
            raise ProfileError(f"profile: expected knob=value, each knob once, found {word!r}")
        knobs[name] = value
    return profile_of(knobs)


def profile_of(knobs: Mapping[str, str]) -> Profile:
    """The profile with these values of knobs, given as text."""
    hints = get_type_hints(Profile)
    for name in knobs:
        if name not in hints:
            near = did_you_mean(name, hints)
            expected = f"expected one of {', '.join(hints)}{near}"
            raise ProfileError(f"profile: no knob {name!r}; {expected}")
    return replace(STRICT, **{name: _knob_value(name, text) for name, text in knobs.items()})


def knob_values(name: str) -> str:
    """The values of a knob in words: `either, propagate or number`."""
    *first, last = _known(name)
    if isinstance(getattr(STRICT, name), frozenset):
        return f"some of {', '.join([*first, last])}, separated by commas, or all"
    return f"{', '.join(first)} or {last}"


def knob_choices(name: str) -> list[str]:
    """The values of a knob; for a knob that holds a set, its members."""
    return list(_known(name))


def _knob_value(name: str, text: str) -> Any:
    known, is_set = _known(name), isinstance(getattr(STRICT, name), frozenset)
    words = [*known] if is_set and text == "all" else text.split(",") if is_set else [text]
    for word in words:
        if word not in known:
            raise ProfileError(f"profile: {name} expects {knob_values(name)}; found {word!r}")
    return frozenset(known[word] for word in words) if is_set else known[text]


def _known(name: str) -> Mapping[str, object]:
    """The values of a knob, or the members of its set, by their text."""
    hint = get_type_hints(Profile)[name]
    if hint is bool:
        return {"true": True, "false": False}
    if hint == frozenset[Op]:
        ops = (d.op for d in DECLARATIONS.values() if d.is_elementwise and d.decomposition)
        return {op.name: op for op in OPS_OF.get(name, ops)}
    if hint == frozenset[DType]:
        # A dtype without a wider one is not emulated.
        widest = dtypes.float64 if name == "excess_precision" else None
        return {dtype.name: dtype for dtype in FLOATS if dtype is not widest}
    return {word: word for word in get_args(hint)}
