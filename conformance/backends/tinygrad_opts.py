"""Turns the optimized loops of a kernel back to plain ones, and optimizes these by tinygrad's Opts.

tinygrad is handed no optimized kernel: its Scheduler makes them. So an axis that a SPLIT made is
joined with the rest of the axis that it was split from, and an Opt splits the two again. Any two
loops of a nest may be joined: a kernel keeps its meaning where no SPLIT made them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from uop.conformance.backends.tinygrad_library import Language, Node
from uop.spec.args import AxisType, ConstArg, RangeArg, arg_of
from uop.spec.errors import UnsupportedError
from uop.spec.kernel.optimization import SPLIT_FROM, Side
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

OPTS: Mapping[AxisType, Mapping[Side, str]] = {
    AxisType.LOCAL: {Side.INNER: "LOCAL"},
    AxisType.THREAD: {Side.OUTER: "THREAD"},
    AxisType.GROUP_REDUCE: {Side.INNER: "GROUP", Side.OUTER: "GROUPTOP"},
    AxisType.UPCAST: {Side.INNER: "UPCAST"},
    AxisType.UNROLL: {Side.INNER: "UNROLL"},
}
"""tinygrad's Opt of a SPLIT, by the type and the side of the new axis."""
OF_FOLDS = (AxisType.REDUCE, AxisType.GROUP_REDUCE, AxisType.UNROLL)
OF_GROUPS = ("LOCAL", "GROUP", "GROUPTOP")
THREADS = 64
"""The most threads of a kernel on any processor; tinygrad's default is that of the processor."""
PLAIN_TYPES = {AxisType.LOOP: "LOOP"} | dict.fromkeys(OF_FOLDS, "REDUCE")
"""tinygrad's types of loops before any Opt; the others are WEAK, which it makes parallel."""


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A loop before any Opt: a RANGE of the kernel, or two loops of a nest joined."""

    axis_type: AxisType
    """What is left of it after its Opts has this type."""
    ranges: tuple[UOp, ...]
    size: int | None
    split: Halves | None = None

    @property
    def plain_type(self) -> str:
        return PLAIN_TYPES.get(self.axis_type, "WEAK")

    @property
    def is_optimized(self) -> bool:
        return self.split is not None or self.axis_type in OPTS

    def indices(self, language: Language, position: Node) -> dict[UOp, Node]:
        """The index of each RANGE at a position of the loop."""
        if self.split is None:
            return {self.ranges[0]: position}
        outer, inner = self.split.outer, self.split.inner
        count = language.uop.const(inner.size)
        return {
            **outer.indices(language, language.node("FLOORDIV", position, count)),
            **inner.indices(language, language.node("FLOORMOD", position, count)),
        }


@dataclass(frozen=True, slots=True, eq=False)
class Halves:
    """The two loops that make up one, and the side on which a SPLIT puts the new axis."""

    outer: Loop
    inner: Loop
    side: Side

    @property
    def new(self) -> Loop:
        return self.inner if self.side is Side.INNER else self.outer

    @property
    def rest(self) -> Loop:
        return self.outer if self.side is Side.INNER else self.inner

    @property
    def opt(self) -> str:
        return OPTS[self.new.axis_type][self.side]


Users = Mapping[UOp, Sequence[UOp]]


def users_of(order: Sequence[UOp]) -> Users:
    """The nodes that read each node of a kernel."""
    users: dict[UOp, list[UOp]] = {u: [] for u in order}
    for u in order:
        for s in u.src:
            users[s].append(u)
    return users


def is_chained(u: UOp, users: Users) -> bool:
    """Whether this is an END of a nest that another END closes."""
    return u.op is Op.END and [user.op for user in users[u]] == [Op.END]


def loops_of(order: Sequence[UOp], users: Users) -> list[Loop]:
    """The loops of a kernel before any Opt, by the ids of their RANGEs."""
    ranges = sorted((u for u in order if u.op is Op.RANGE), key=lambda r: arg_of(r, RangeArg).id)
    nests = _nests(order, users)
    loops = [_loop(r) for r in ranges]
    # From the last: what a SPLIT made may have been split itself.
    k = len(loops) - 2
    while k >= 0:
        outer, inner = loops[k : k + 2]
        is_nest = nests.get(outer.ranges[0]) == nests.get(inner.ranges[0])
        side = _side(outer, inner) if is_nest else None
        if side is None:
            k -= 1
        else:
            loops[k : k + 2] = [_joined(Halves(outer, inner, side))]
            k = min(k, len(loops) - 2)
    return loops


def _nests(order: Sequence[UOp], users: Users) -> Mapping[UOp, frozenset[UOp]]:
    """What closes each RANGE: REDUCEs, and the outermost ENDs of nests."""
    nests: dict[UOp, frozenset[UOp]] = {}
    outermost: dict[UOp, UOp] = {}
    for u in reversed(order):
        if u.op in (Op.END, Op.REDUCE):
            outermost[u] = outermost[users[u][0]] if is_chained(u, users) else u
            for r in u.src[1:]:
                nests[r] = nests.get(r, frozenset()) | {outermost[u]}
    return nests


def _loop(r: UOp) -> Loop:
    size = int(arg_of(r.src[0], ConstArg).value) if r.src[0].op is Op.CONST else None
    axis_type = arg_of(r, RangeArg).axis_type
    if axis_type is AxisType.WARP:
        raise UnsupportedError("tinygrad makes the axes of a warp itself")
    if axis_type in OPTS and (size is None or size < 2):
        # An axis of one iteration is none for tinygrad.
        axis_type = AxisType.REDUCE if axis_type in OF_FOLDS else AxisType.GLOBAL
    return Loop(axis_type, (r,), size)


def _side(outer: Loop, inner: Loop) -> Side | None:
    """The side on which a SPLIT may have made one of two loops of the other, if it may."""
    for new, rest, side in ((inner, outer, Side.INNER), (outer, inner, Side.OUTER)):
        is_opt = new.axis_type in OPTS and side in OPTS[new.axis_type]
        if is_opt and rest.size is not None and rest.axis_type in SPLIT_FROM[new.axis_type].types:
            return side
    return None


def _joined(halves: Halves) -> Loop:
    outer, inner = halves.outer, halves.inner
    size = (outer.size or 0) * (inner.size or 0)
    return Loop(halves.rest.axis_type, (*outer.ranges, *inner.ranges), size, halves)


class Optimizer:
    """tinygrad's Scheduler, which applies the Opts of a kernel for a renderer."""

    def __init__(self, language: Language, sink: Node) -> None:
        self.language, self.renderer, self.target = language, language.renderer, language.target
        # tinygrad simplifies before any Opt too: joined loops have plain indices then.
        self.scheduler = language.scheduler(sink.simplify(), self.renderer)
        self.scheduler.convert_loop_to_global()

    def optimized(self, plain: Mapping[Loop, Node]) -> Node:
        """The kernel with optimized loops. UnsupportedError for what tinygrad or a device lacks."""
        for loop, r in plain.items():
            # A simplified kernel may do without a loop, and a parallel loop is another node.
            for axis in [x for x in self.scheduler.rngs if x.arg[0] == r.arg[0]]:
                self._split(loop, self._all_of(loop, axis) if loop.axis_type in OPTS else axis)
        return self.scheduler.get_optimized_ast()

    def _all_of(self, loop: Loop, axis: Node) -> Node:
        """Give all of a loop its type, where nothing is left of what it was split from."""
        name = next(iter(OPTS[loop.axis_type].values()))
        return self._apply(name, loop, axis)[1]

    def _split(self, loop: Loop, axis: Node) -> None:
        if loop.split is not None:
            rest, new = self._apply(loop.split.opt, loop.split.new, axis)
            self._split(loop.split.rest, rest)
            self._split(loop.split.new, new)

    def _apply(self, name: str, new: Loop, axis: Node) -> tuple[Node, Node]:
        """What is left of an axis, and the new one."""
        if name in OF_GROUPS and not self.renderer.has_local:
            raise UnsupportedError(f"{self.target} has no work groups: no {name}")
        if name == "THREAD" and not self.renderer.has_threads:
            raise UnsupportedError(f"{self.target} has no threads: no {name}")
        language = self.language
        opt = language.opt(language.opt_ops[name], self._number(name, axis), new.size)
        try:
            with language.context(NUM_CPU_THREADS=THREADS):
                rest, made = self.scheduler.apply_opt(opt)
        except language.opt_error as error:
            raise UnsupportedError(f"{self.target} takes no {name} here: {error}") from None
        return rest, made

    def _number(self, name: str, axis: Node) -> int:
        """The number of an axis among those that an Opt may name."""
        number: int = self.scheduler.rngs.index(axis)
        if name == "UNROLL":
            number = self.scheduler.unrollable_dims.index(number)
        elif name in ("GROUP", "GROUPTOP"):
            folds = self.scheduler.axes_of(self.language.axis_types["REDUCE"])
            number = folds.index(number)
        return number
