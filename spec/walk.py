"""Walks over graphs without recursion, so that graphs may be arbitrarily deep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

from uop.spec.ops.names import Op

if TYPE_CHECKING:
    from uop.spec.registry import Node

CALLS = frozenset({Op.FUNCTION, Op.CALL})
M = TypeVar("M", bound="Node")
N = TypeVar("N")
T = TypeVar("T")


def toposort(roots: Iterable[N], sources: Callable[[N], Sequence[N]]) -> list[N]:
    """Every node under the roots once, in depth-first post-order: sources before users."""
    order: dict[N, None] = {}
    opened: set[N] = set()
    stack = list(roots)[::-1]
    while stack:
        node = stack[-1]
        if node in opened:
            # Its sources are done. A node that is on the stack twice keeps its first position.
            order[stack.pop()] = None
            continue
        opened.add(node)
        depth = len(stack)
        for s in reversed(sources(node)):
            if s not in opened:
                stack.append(s)
        if len(stack) == depth:
            order[stack.pop()] = None
    return list(order)


def kept_with_root(find: Callable[[N], T]) -> Callable[[N], T]:
    """Cache the result of `find` while its node lives. The result must not hold the node."""
    known: WeakKeyDictionary[N, T] = WeakKeyDictionary()

    @wraps(find)
    def kept(root: N) -> T:
        try:
            return known[root]
        except KeyError:
            found = known[root] = find(root)
            return found

    return kept


def outside_bodies(node: M) -> tuple[M, ...]:
    """The sources of a node without the body of a FUNCTION or CALL, which has its own PARAMs."""
    return node.src[1:] if node.op in CALLS else node.src


def free_params(body: M) -> list[M]:
    """The PARAMs of a body, without the PARAMs of nested bodies."""
    found, stack, params = {body}, [body], []
    while stack:
        u = stack.pop()
        if u.op is Op.PARAM:
            params.append(u)
        # `outside_bodies` inlined: this runs for every CALL that is constructed.
        for s in u.src[1:] if u.op in CALLS else u.src:
            if s not in found:
                found.add(s)
                stack.append(s)
    return params
