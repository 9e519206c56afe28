"""Walks over graphs without recursion, so that graphs may be arbitrarily deep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

from uop.spec.ops.names import Op

if TYPE_CHECKING:
    from uop.spec.registry import Node

CALLS = frozenset({Op.FUNCTION, Op.CALL})
M = TypeVar("M", bound="Node")
N = TypeVar("N")
T = TypeVar("T")


def toposort(
    roots: Iterable[N], sources: Callable[[N], Sequence[N]], seen: set[N] | None = None
) -> list[N]:
    """Every node under the roots once, in depth-first post-order: sources before users.

    The nodes that are in `seen` before, and what is below these alone, are left out; the others
    are added to it.
    """
    order: list[N] = []
    seen = set() if seen is None else seen
    for root in roots:
        if root in seen:
            continue
        seen.add(root)
        # The nodes on the way down, and those of the sources of each that are left.
        path, left = [root], [iter(sources(root))]
        while path:
            for s in left[-1]:
                if s not in seen:
                    seen.add(s)
                    below = sources(s)
                    if below:
                        path.append(s)
                        left.append(iter(below))
                        break
                    order.append(s)
            else:
                order.append(path.pop())
                left.pop()
    return order


def rebuild(
    root: M,
    visit: Callable[[M, list[T]], T],
    sources: Callable[[M], Sequence[M]] | None = None,
    done: dict[M, T] | None = None,
) -> T:
    """Rebuild one graph by `all_rebuilt`; return the new root."""
    return all_rebuilt([root], visit, sources, done)[root]


def all_rebuilt(
    roots: Iterable[M],
    visit: Callable[[M, list[T]], T],
    sources: Callable[[M], Sequence[M]] | None = None,
    done: dict[M, T] | None = None,
) -> dict[M, T]:
    """Rebuild graphs: `visit` gets each node and its rebuilt sources, and returns the new node.

    `done` collects the new nodes. A node that it already has is not visited, nor are the nodes that
    only it uses.
    """
    below = sources or all_sources
    done = {} if done is None else done
    for u in toposort(roots, below, set(done)):
        done[u] = visit(u, [done[s] for s in below(u)])
    return done


all_sources: Callable[[M], tuple[M, ...]] = attrgetter("src")


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


def free_params(body: M) -> tuple[M, ...]:
    """The PARAMs of a body, without the PARAMs of nested bodies."""
    return (body,) if body.op is Op.PARAM else _params_below(body)


@kept_with_root
def _params_below(body: M) -> tuple[M, ...]:
    # Most bodies call none; then this is the order that the passes over the body need too.
    order = body.toposort()
    if any(u.op in CALLS for u in order):
        order = toposort([body], outside_bodies)
    return tuple(u for u in order if u.op is Op.PARAM)
