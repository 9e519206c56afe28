"""Graph rewriting: applies rules bottom-up to a fixed point.

A rule is a function from a node to its replacement, or to None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from uop.spec.errors import PassError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

Fired = Callable[[str, UOp, UOp], None]
"""Called for each firing with the name of the rule, the node before and the node after."""

BUDGET = 1_000_000
"""The most firings of a Rewriter. Only rules that undo each other reach it."""


class Rule(Protocol):
    """`rule(u)` returns the replacement of u, or None if the rule does not apply."""

    ops: tuple[Op, ...]
    __name__: str

    def __call__(self, u: UOp, /) -> UOp | None: ...


def rewrites(*ops: Op) -> Callable[[Callable[[UOp], UOp | None]], Rule]:
    """Declare a function as a rule for nodes of these ops."""

    def declare(function: Callable[[UOp], UOp | None]) -> Rule:
        function.ops = ops  # type: ignore[attr-defined]
        return function  # type: ignore[return-value]

    return declare


class RuleSet:
    """Rules in order: on each node the first one that applies fires."""

    def __init__(self, *rules: Rule) -> None:
        self.rules = rules
        self._of: dict[Op, list[Rule]] = {}
        for rule in rules:
            for op in rule.ops:
                self._of.setdefault(op, []).append(rule)

    def __add__(self, other: RuleSet) -> RuleSet:
        return RuleSet(*self.rules, *other.rules)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the rules, in order."""
        return tuple(rule.__name__ for rule in self.rules)

    def of(self, op: Op) -> Sequence[Rule]:
        return self._of.get(op, ())


def unobserved(rule: str, before: UOp, after: UOp) -> None:
    """The observer that does nothing."""


class Rewriter:
    """Rewrites graphs by a set of rules. It caches every node: shared parts are rewritten once."""

    def __init__(self, rules: RuleSet, fired: Fired = unobserved, budget: int = BUDGET) -> None:
        self.rules, self.fired, self.budget = rules, fired, budget
        self._done: dict[UOp, UOp] = {}

    def __call__(self, root: UOp) -> UOp:
        """Rewrite a graph until no rule applies; sources are rewritten before their users."""
        done = self._done
        if root in done:
            return done[root]
        # Replacements that are not rewritten themselves so far.
        waits: dict[UOp, UOp] = {}
        # The nodes on the way down, and those of the sources of each that are left.
        path, left = [root], [iter(root.src)]
        while path:
            for s in left[-1]:
                if s not in done:
                    if s in waits:
                        raise self._circle(s)
                    path.append(s)
                    left.append(iter(s.src))
                    break
            else:
                u = path[-1]
                after = waits.get(u)
                if after is None:
                    rebuilt = u.with_src([done[s] for s in u.src]) if u.src else u
                    after = self._replacement(rebuilt)
                    if after is None:
                        after = done[rebuilt] = rebuilt
                    elif after not in done:
                        if after in waits:
                            raise self._circle(after)
                        waits[u] = after
                        path.append(after)
                        left.append(iter(after.src))
                        continue
                done[u] = done[after]
                path.pop()
                left.pop()
        return done[root]

    def _replacement(self, u: UOp) -> UOp | None:
        """What the first rule that applies makes of a node; None if none does."""
        for rule in self.rules.of(u.op):
            after = rule(u)
            if after is not None and after is not u:
                self._spend(rule, u, after)
                return after
        return None

    def _circle(self, u: UOp) -> PassError:
        rule = next(rule for rule in self.rules.of(u.op) if rule(u) is not None)
        return PassError(f"rewrite: {rule.__name__} goes in a circle, from {u!r} to itself")

    def _spend(self, rule: Rule, before: UOp, after: UOp) -> None:
        self.budget -= 1
        if self.budget < 0:
            raise PassError(f"rewrite: no fixed point, {rule.__name__} fires on {before!r}")
        if (before.dtype, before.shape) != (after.dtype, after.shape):
            raise PassError(f"rewrite: {rule.__name__} turns {before!r} into {after!r}")
        self.fired(rule.__name__, before, after)


def rewrite(root: UOp, rules: RuleSet, fired: Fired = unobserved) -> UOp:
    """The graph rewritten by the rules to a fixed point."""
    if not any(rules.of(u.op) for u in root.toposort()):
        return root
    return Rewriter(rules, fired)(root)
