"""What is better and what is worse in one report than in another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from uop.conformance.wire import Json

Key = tuple[str, str, str]
VERDICTS = ("does not conform", "inconclusive", "conforms")
STATES = ("failed", "not run", "skipped", "passed")
"""What a cell may be, the worst first."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that changed, in a line, and whether that is good."""

    is_better: bool
    text: str


def changes(a: Json, b: Json) -> list[Change]:
    """From report `a` to report `b`: the verdict, cells, causes, largest errors, skipped cases."""
    return [*_verdict(a, b), *_cells(a, b), *_causes(a, b)]


def notes(a: Json, b: Json) -> list[str]:
    """What makes two reports hard to compare: another backend, suite, profile, choice of cases."""
    parts = [
        ("suite", a["suite"], b["suite"]),
        ("backend", _who(a), _who(b)),
        ("profile", a["profile"], b["profile"]),
        *((name, a["options"].get(name), b["options"].get(name)) for name in a["options"]),
        ("cut short", a["summary"]["interrupted"], b["summary"]["interrupted"]),
    ]
    found = (f"{name}: {_words(x)}, then {_words(y)}" for name, x, y in parts if x != y)
    return list(dict.fromkeys(found))


def _who(report: Json) -> str:
    return " ".join(report["backend"][name] for name in ("name", "version", "device"))


def _words(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _verdict(a: Json, b: Json) -> Iterator[Change]:
    before, after = a["summary"]["verdict"], b["summary"]["verdict"]
    if before != after:
        better = VERDICTS.index(after) > VERDICTS.index(before)
        yield Change(better, f"verdict: {before}, then {after}")


def _cells(a: Json, b: Json) -> Iterator[Change]:
    before, after = _by_key(a), _by_key(b)
    for key in sorted(before.keys() | after.keys()):
        yield from _cell("/".join(key), before.get(key), after.get(key))


def _by_key(report: Json) -> Mapping[Key, Json]:
    return {(c["level"], c["op"], c["dtype"]): c for c in report["cells"]}


def _cell(name: str, a: Json | None, b: Json | None) -> Iterator[Change]:
    """One change at most: a cell of another state has other numbers as well."""
    before, after = _state(a), _state(b)
    if before != after:
        better = STATES.index(after) > STATES.index(before)
        yield Change(better, f"{name}: {_told(before, a)}, then {_told(after, b)}")
    elif a is not None and b is not None:
        for what, was, now in (
            ("failed", a["failed"], b["failed"]),
            ("skipped", sum(a["skipped"].values()), sum(b["skipped"].values())),
            ("largest error in ULP", a["max_ulp"], b["max_ulp"]),
        ):
            if was != now:
                yield Change(now < was, f"{name}: {what} {was:,g}, then {now:,g}")


def _state(cell: Json | None) -> str:
    if cell is None:
        return "not run"
    if cell["failed"]:
        return "failed"
    return "passed" if cell["programs"] else "skipped"


def _told(state: str, cell: Json | None) -> str:
    if cell is None or state in ("not run", "passed"):
        return state
    if state == "skipped":
        return f"skipped ({cell['skipped_reason']})"
    return f"failed ({cell['failed']:,} of {cell['programs']:,} programs)"


def _causes(a: Json, b: Json) -> Iterator[Change]:
    before, after = ({f["signature"]: f for f in r["failures"]} for r in (a, b))
    for signature in sorted(before.keys() - after.keys()):
        yield Change(True, f"cause gone: {signature}")
    for signature in sorted(after.keys() - before.keys()):
        failure = after[signature]
        message = failure["message"].partition("\n")[0]
        yield Change(False, f"new cause: {signature}: {failure['id']}: {message}")
