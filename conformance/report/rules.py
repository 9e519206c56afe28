"""Says which rules of a compiler fired in a run, and in how many programs."""

from __future__ import annotations

from uop.conformance.report.model import Report

FEW = 3
"""A rule that fired in fewer programs is hardly tested."""


def rare(report: Report) -> dict[str, int]:
    """The rules that fired in few programs, the fewest first."""
    counts = report.rules or {}
    return {name: n for name, n in sorted(counts.items(), key=lambda rule: rule[1]) if n < FEW}


def rules_text(report: Report) -> list[str]:
    """How many rules fired, and the names of the rare ones; nothing without rules."""
    if not report.rules:
        return []
    fired, few = sum(map(bool, report.rules.values())), rare(report)
    names = ", ".join(f"{name} ({n})" for name, n in few.items())
    rest = f"; {len(few)} in fewer than {FEW} programs: {names}" if few else ""
    return [f"rules: {fired} of {len(report.rules)} fired{rest}"]
