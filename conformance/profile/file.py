"""Writes and reads profiles as TOML files; every knob must be stated."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from uop.conformance.checks import PROFILE_SUFFIX
from uop.conformance.profile.card import Card, Observation
from uop.conformance.protocol.types import Hello
from uop.conformance.run.commands import uop_command
from uop.spec.errors import UopError
from uop.spec.latitude import KNOBS, STRICT, Profile
from uop.spec.text.profile_text import ProfileError, profile_of
from uop.spec.text.reading import read_bytes

SCHEMA = "uop-profile/1"
SHOWN = 3
"""The most lines of evidence above a knob."""
MOST_PROFILE = 1 << 20
"""The most bytes of a profile."""


class ProfileFileError(UopError):
    """A profile file is invalid. The message says where, what is expected, what was found."""


def profile_text(card: Card, hello: Hello, backend: str) -> str:
    """Write the observed profile as TOML, with the evidence as comments."""
    observed = card.profile
    who = f"{hello.name} {hello.version} on {hello.device}"
    demanding = uop_command("conform", backend, "--profile", f"FILE{PROFILE_SUFFIX}")
    lines = [
        _comment(f"# What {who} does where the spec leaves a choice."),
        _comment(f"# Edit and commit; {demanding} demands it."),
        "# Every knob is stated, so that a file that was cut off is noticed.",
        f'schema = "{SCHEMA}"',
    ]
    for knob in KNOBS:
        entries = [entry for entry in card.entries if entry.knob == knob]
        lines += ["", f"# {KNOBS[knob]}", *_comments(entries)]
        lines.append(f"{knob} = {_toml(getattr(observed, knob))}")
    return "\n".join(lines) + "\n"


def read_profile(path: Path) -> Profile:
    """Read a profile. Raises ProfileFileError for an invalid or truncated file."""
    try:
        entries = tomllib.loads(read_bytes(path, MOST_PROFILE).decode("utf-8-sig"))
    except OSError as error:
        raise ProfileFileError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise ProfileFileError(f"{path}: no TOML, or cut off: {error}") from error
    except RecursionError:
        raise ProfileFileError(f"{path}: expected TOML, found lists nested too deep") from None
    if entries.pop("schema", None) != SCHEMA:
        raise ProfileFileError(f'{path}: expected schema = "{SCHEMA}" in its first lines')
    missing = [knob for knob in KNOBS if knob not in entries]
    try:
        texts = {knob: _knob_text(knob, value) for knob, value in entries.items()}
        profile = profile_of({knob: text for knob, text in texts.items() if text})
    except ProfileError as error:
        raise ProfileFileError(f"{path}: {error}") from error
    if missing:
        hint = "every knob is stated; was the file cut off?"
        raise ProfileFileError(f"{path}: no value for {', '.join(missing)}: {hint}")
    return profile


def _comments(entries: Sequence[Observation]) -> list[str]:
    if not entries:
        return ["# Not observed: the backend lacks what would show it."]
    lines = []
    for entry in entries:
        lines.append(f"# {entry.point}: {entry.observed}")
        evidence = entry.conflict or entry.evidence[:SHOWN]
        lines += [f"#   {line}" for line in evidence]
    return [_comment(line) for line in lines]


def _comment(text: str) -> str:
    """Replace unprintable characters, which a backend may send and TOML comments forbid."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, frozenset):
        return f"[{', '.join(sorted(_quoted(member.name) for member in value))}]"
    return _quoted(str(value))


def _quoted(text: str) -> str:
    return f'"{text}"'


def _knob_text(knob: str, value: Any) -> str:
    """A TOML value as the text of a knob; the text of an empty set is empty."""
    if knob not in KNOBS:
        return str(value)
    kind = type(getattr(STRICT, knob))
    if kind is frozenset and isinstance(value, list) and all(isinstance(v, str) for v in value):
        return ",".join(value)
    if kind is type(value) is bool:
        return str(value).lower()
    if kind is type(value) is str and value:
        return str(value)
    expected = {frozenset: "a list of names", bool: "true or false", str: "a word"}[kind]
    raise ProfileError(f"profile: {knob} expects {expected}; found {value!r}")
