"""Walks over graphs, queries on whole programs, and rewrites around bodies.

Walks have no recursion, so that graphs may be arbitrarily deep. A body is the first source of a
FUNCTION or CALL; it has PARAMs of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import wraps
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar, cast
from weakref import WeakKeyDictionary

from uop.spec.args import AddrSpace, BufferArg, CustomFunctionArg, GetTupleArg, ParamArg, arg_of
from uop.spec.conditions.labels import clash
from uop.spec.dtype import dtypes
from uop.spec.kernel.functions import CUSTOM_FUNCTIONS
from uop.spec.ops.names import Op

if TYPE_CHECKING:
    from uop.spec.args import Device
    from uop.spec.registry import Node
    from uop.spec.uop import UOp

M = TypeVar("M", bound="Node")
N = TypeVar("N")
T = TypeVar("T")

CALLS = frozenset({Op.FUNCTION, Op.CALL})
LEAVES = (Op.PARAM, Op.BUFFER)
AROUND_CALLS = frozenset({Op.SINK, Op.GROUP, Op.BUFFER, Op.BINARY, Op.AFTER, Op.STACK, Op.CONST})
"""The ops that a kernel program has outside its bodies besides CALL and PARAM."""

PRECOMPILED = "precompiled"
"""The tag of a FUNCTION that the compiler calls instead of inlining it: it is compiled once."""


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


def free_sources(node: M) -> tuple[M, ...]:
    """The sources of a node; of a BIND without its variable, of a call without its body."""
    return node.src[1:] if node.op is Op.BIND else outside_bodies(node)


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


class ProgramKind(StrEnum):
    """The kind of a program, which decides how it is run."""

    TENSOR = "tensor"
    """Ops on whole tensors."""
    KERNEL = "kernel"
    """A SINK of CALLs."""
    LINEAR = "linear"
    """A SINK of CALLs whose bodies are lists of instructions: LINEAR or PROGRAM."""
    MIXED = "mixed"
    """CALLs and ops on whole tensors."""

    @property
    def calls_kernels(self) -> bool:
        """Whether the program consists of kernels alone."""
        return self in (ProgramKind.KERNEL, ProgramKind.LINEAR)


def kind_of(root: UOp) -> ProgramKind:
    """The kind of a program."""
    bodies = {call.src[0].op for call in calls(root)}
    if not bodies:
        return ProgramKind.TENSOR
    # What makes a program with CALLs a mixed one: a tensor op, or a root that is no SINK.
    known = (AROUND_CALLS | {Op.CALL}) - {Op.CONST, Op.STACK}
    others = (u for u in _below(root) if u.op not in known and u.dtype is not dtypes.index)
    if root.op is not Op.SINK or any(others):
        return ProgramKind.MIXED
    return ProgramKind.LINEAR if bodies <= {Op.LINEAR, Op.PROGRAM} else ProgramKind.KERNEL


def outside(root: UOp) -> list[UOp]:
    """The nodes of a program outside all bodies, sources first."""
    return [*_below(root), root]


@kept_with_root
def _below(root: UOp) -> tuple[UOp, ...]:
    return tuple(toposort([root], outside_bodies)[:-1])


def calls(root: UOp) -> list[UOp]:
    """The CALLs of a program, each after the CALLs it depends on."""
    return [u for u in outside(root) if u.op is Op.CALL]


def kernel_calls(root: UOp) -> list[UOp]:
    """The CALLs of a program that run a kernel, not a function by name."""
    return [call for call in calls(root) if call.src[0].op is not Op.CUSTOMFUNCTION]


def kernels(root: UOp) -> list[UOp]:
    """The distinct kernels that the CALLs of a program run."""
    return list(dict.fromkeys(call.src[0] for call in kernel_calls(root)))


def with_kernels(root: UOp, rewritten: Callable[[UOp], UOp]) -> UOp:
    """A program with each of its kernels rewritten."""
    return substituted(root, {body: rewritten(body) for body in kernels(root)})


def with_calls(root: UOp, rewritten: Callable[[UOp], UOp]) -> UOp:
    """A program with each of its CALLs rewritten, if it calls kernels."""

    def with_call(u: UOp, operands: list[UOp]) -> UOp:
        new = over(u, operands)
        return rewritten(new) if u.op is Op.CALL else new

    return rebuild(root, with_call, outside_bodies) if kernels(root) else root


def leaves(root: UOp) -> list[UOp]:
    """The PARAMs and BUFFERs of a program."""
    return [u for u in outside(root) if u.op in LEAVES]


def slots_of(root: UOp) -> dict[int, UOp]:
    """The PARAMs and BUFFERs of a program by slot, without variables that a BIND gives a value.

    InvalidError if two of them have one slot.
    """
    found = dict(_slots_below(root))
    if root.op in LEAVES:
        found[slot_of(root)] = root
    return found


@kept_with_root
def _slots_below(root: UOp) -> dict[int, UOp]:
    found: dict[int, UOp] = {}
    for u in toposort([root], free_sources):
        if u.op in LEAVES and (other := found.setdefault(slot_of(u), u)) is not u:
            raise clash(slot_of(u), other, u)
    return {slot: u for slot, u in found.items() if u is not root}


def places_of(device: Device) -> tuple[str, ...]:
    """The names of a device; none for None."""
    if device is None:
        return ()
    return device if isinstance(device, tuple) else (device,)


def devices_of(root: UOp) -> tuple[str, ...]:
    """The names of the devices of a program, in the order of their first use."""
    found = dict.fromkeys(u.device for u in root.toposort())
    return tuple(dict.fromkeys(name for device in found for name in places_of(device)))


def slot_of(leaf: Node) -> int:
    """The slot of a PARAM or BUFFER."""
    return arg_of(leaf, ParamArg, BufferArg).slot


def base_of(location: UOp) -> UOp:
    """The PARAM, BUFFER or BINARY that a location is a view of."""
    while location.op not in (*LEAVES, Op.BINARY):
        location = location.src[0]
    return location


def views_of(location: UOp) -> Iterator[UOp]:
    """The views between a location and its base, the outermost first, without AFTERs."""
    while location.op not in (*LEAVES, Op.BINARY):
        if location.op is not Op.AFTER:
            yield location
        location = location.src[0]


def viewed(location: UOp, contents: UOp, done: Mapping[UOp, UOp]) -> UOp:
    """Apply the views of a location to the contents of its base, with rewritten operands."""
    for view in reversed([*views_of(location)]):
        contents = view.with_src([contents, *(done[s] for s in view.src[1:])])
    return contents


def put_back(view: UOp, part: UOp) -> UOp:
    """Put the elements of a view back in place, with zeros elsewhere, which is the gradient of the
    view.
    """
    rule = cast("Callable[[type[UOp], UOp, UOp], Sequence[UOp]]", view.declaration.gradient)
    return rule(type(view), view, part)[0]


def without_order(location: UOp) -> UOp:
    """A location without the AFTERs around it."""
    while location.op is Op.AFTER:
        location = location.src[0]
    return location


def returns_memory(root: UOp) -> bool:
    """Whether a program returns the contents of the buffers that it writes, and no values."""
    return root.dtype is dtypes.void and root.op not in (Op.TUPLE, Op.FUNCTION)


def written(root: UOp) -> list[UOp]:
    """The GLOBAL memory that a program writes, by STOREs of its own or by its CALLs."""
    direct = [base_of(u.src[0]) for u in outside(root) if u.op is Op.STORE]
    inside = (base_of(call.src[1 + k]) for call in calls(root) for k in written_by(call))
    found = dict.fromkeys((*direct, *inside))
    return [u for u in found if u.addrspace is AddrSpace.GLOBAL]


def written_by(call: UOp) -> list[int]:
    """The positions of the arguments that the body of a CALL may write to.

    A function by name that is not registered may write to all.
    """
    body, *arguments = call.src
    if body.op is Op.CUSTOMFUNCTION:
        function = CUSTOM_FUNCTIONS.get(arg_of(body, CustomFunctionArg).name)
        every = range(len(arguments))
        return [k for k in every if function is None or k in function.writes]
    return _slots_written(body)


@kept_with_root
def _slots_written(body: UOp) -> list[int]:
    bases = dict.fromkeys(base_of(u.src[0]) for u in body.toposort() if u.declaration.is_write)
    return [slot_of(base) for base in bases if base.op is Op.PARAM]


def passed_buffer(argument: UOp) -> UOp | None:
    """The buffer that an argument of a CALL is, in any shape.

    None for a value, and for another view: then the kernel gets a buffer with a copy.
    """
    if argument.addrspace is None:
        return None
    is_whole = all(view.op is Op.RESHAPE for view in views_of(argument))
    return base_of(argument) if is_whole else None


def accessed(access: UOp, call: UOp) -> UOp:
    """The memory that a LOAD, STORE or ATOMICADD in the kernel of a CALL reads or writes."""
    base = base_of(access.src[0])
    return base_of(call.src[1 + slot_of(base)]) if base.op is Op.PARAM else base


def substituted(root: UOp, new: Mapping[UOp, UOp]) -> UOp:
    """Replace nodes of a graph. Nodes inside a replacement are not replaced again."""
    return rebuild(root, type(root).with_src, done=dict(new)) if new else root


def replaced(root: UOp, new: Mapping[UOp, UOp]) -> UOp:
    """Replace nodes outside the bodies of a program. Replacements are not searched again."""
    return all_replaced((root,), new)[0]


def all_replaced(roots: Iterable[UOp], new: Mapping[UOp, UOp]) -> list[UOp]:
    """`replaced` for several values that share nodes."""
    roots = list(roots)
    done = all_rebuilt(roots, over, outside_bodies, dict(new))
    return [done[root] for root in roots]


def over(u: UOp, operands: Sequence[UOp]) -> UOp:
    """A node with other operands; the body that it calls stays."""
    return u.with_src((*u.src[: len(u.src) - len(operands)], *operands))


def inlined(root: UOp) -> UOp:
    """Inline every FUNCTION of a program."""
    return all_inlined((root,))[root]


def all_inlined(
    roots: Iterable[UOp],
    rewritten: Callable[[UOp], UOp] = lambda u: u,
    keep: Callable[[UOp], bool] = lambda u: False,
) -> dict[UOp, UOp]:
    """Inline every FUNCTION of these graphs that is not to be kept; return a map from old to new
    nodes.

    `rewritten` is applied to every other node that is not void, over its new sources.
    """

    def inline(u: UOp, src: list[UOp]) -> UOp:
        if u.op is Op.FUNCTION and not keep(u):
            return applied(src[0], src[1:])
        if u.op is Op.GETTUPLE and src[0].op is Op.TUPLE:
            return src[0].src[arg_of(u, GetTupleArg).idx]
        new = over(u, src)
        return new if new.dtype is dtypes.void else rewritten(new)

    return all_rebuilt(roots, inline, lambda u: u.src[1:] if u.op is Op.CALL else u.src)


def applied(body: UOp, arguments: list[UOp]) -> UOp:
    """Substitute argument k for PARAM k of a body."""
    return replaced(body, {p: arguments[slot_of(p)] for p in leaves(body) if p.op is Op.PARAM})
