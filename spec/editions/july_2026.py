"""Edition 2026-07: EXPAND prepends axes, REDUCE removes leading ones, UNSHARD over ranges (D-078).

A RANGE of type DEVICE counts shards. The core has no such RANGE, since it shards by tuples of
devices: it is read as a RANGE with the tag DEVICE, and UNSHARD substitutes each of its values.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from uop.spec.args import Arg, AxisType, PermuteArg, RangeArg, ReduceArg, arg_of
from uop.spec.editions.edition import Edition, Word, by_name, core_words
from uop.spec.ops.names import Op
from uop.spec.properties.shape import index_values
from uop.spec.uop import UOp, dims, index_const

if TYPE_CHECKING:
    from uop.spec.editions.edition import Form, Reading, Writing

DEVICE_TAG = "DEVICE"

TITLES = {
    "REDUCE.n": "T has n axes",
    "UNSHARD.axes": "one axis for each RANGE, no axis twice",
    "UNSHARD.range": "operands after T count devices up to a CONST",
    "UNSHARD.rank": "axes are axes of T",
    "UNSHARD.shards": "T has a shard for each value of the RANGE",
}
"""What must hold of the words besides the constraints of the core nodes, by label."""


class LaterAxisType(Enum):
    """The types of a RANGE: those of the core, and DEVICE with the letter d."""

    GLOBAL = "g"
    LOCAL = "l"
    WARP = "w"
    THREAD = "t"
    LOOP = "L"
    REDUCE = "R"
    GROUP_REDUCE = "G"
    UPCAST = "u"
    UNROLL = "r"
    DEVICE = "d"


@dataclass(frozen=True, slots=True)
class LeadingArg(Arg):
    """Fold the first n axes with op."""

    op: Op
    n: int = 0


@dataclass(frozen=True, slots=True)
class UnshardArg(Arg):
    axes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LaterRangeArg(Arg):
    id: int
    axis_type: LaterAxisType = LaterAxisType.LOOP


def _read_expand(reading: Reading, src: tuple[UOp, ...], arg: None) -> UOp:
    t, n = src
    if not n.src:
        return UOp(Op.EXPAND, t, dims(t.shape))
    under = UOp(Op.RESHAPE, t, dims((*(1 for _ in n.src), *t.shape)))
    return UOp(Op.EXPAND, under, dims((*index_values(n), *t.shape)))


def _write_expand(writing: Writing, u: UOp) -> Form:
    """Remove the axes that grow, prepend them with their new size, and permute them into place."""
    t = u.src[0]
    grown = [k for k, (old, new) in enumerate(zip(t.shape, u.shape, strict=True)) if old != new]
    kept = [k for k in range(len(t.shape)) if k not in grown]
    if _prepends(u):
        count = len(u.shape) - len(t.src[0].shape)
        new = writing.core(dims(u.shape[:count]))
        return writing.form("EXPAND", writing[t.src[0]], new)
    form = writing[t]
    if grown:
        form = _reshape(writing, form, tuple(t.shape[k] for k in kept))
    form = writing.form("EXPAND", form, writing.core(dims(u.shape[k] for k in grown)))
    order = tuple([*grown, *kept].index(k) for k in range(len(t.shape)))
    if order == tuple(range(len(order))):
        return form
    return writing.form("PERMUTE", form, arg=PermuteArg(order))


def _prepends(u: UOp) -> bool:
    """Whether this EXPAND is the reading of an EXPAND that prepends axes."""
    t = u.src[0]
    if t.op is not Op.RESHAPE or t.tag is not None:
        return False
    old = t.src[0].shape
    count = len(t.shape) - len(old)
    return count > 0 and t.shape == (1,) * count + old and u.shape[count:] == old


def _read_reduce(reading: Reading, src: tuple[UOp, ...], arg: LeadingArg) -> UOp:
    t, n = src[0], arg.n
    if not 0 <= n <= len(t.shape):
        raise reading.broken("REDUCE.n", f"{n} of {len(t.shape)}")
    folded = UOp(Op.REDUCE, *src, arg=ReduceArg(arg.op, tuple(range(n))))
    return UOp(Op.RESHAPE, folded, dims(t.shape[n:])) if n else folded


def _write_reduce(writing: Writing, u: UOp) -> Form:
    """Permute the folded axes to the front, fold them away, and insert axes of size 1."""
    arg, t = arg_of(u, ReduceArg), u.src[0]
    form, ranges = writing[t], [writing[r] for r in u.src[1:]]
    order = (*arg.axes, *(k for k in range(len(t.shape)) if k not in arg.axes))
    if order != tuple(range(len(order))):
        form = writing.form("PERMUTE", form, arg=PermuteArg(order))
    form = writing.form("REDUCE", form, *ranges, arg=LeadingArg(arg.op, len(arg.axes)))
    return _reshape(writing, form, u.shape) if arg.axes else form


def _write_reshape(writing: Writing, u: UOp) -> Form:
    """A REDUCE of leading axes and the RESHAPE that drops them become one REDUCE."""
    t = u.src[0]
    if t.op is Op.REDUCE and t.tag is None:
        arg = arg_of(t, ReduceArg)
        n = len(arg.axes)
        if n and arg.axes == tuple(range(n)) and u.shape == t.shape[n:]:
            src = (writing[s] for s in t.src)
            return writing.form("REDUCE", *src, arg=LeadingArg(arg.op, n))
    return writing.same(u)


def _reshape(writing: Writing, form: Form, shape: tuple[int, ...]) -> Form:
    return writing.form("RESHAPE", form, writing.core(dims(shape)))


def _read_range(reading: Reading, src: tuple[UOp, ...], arg: LaterRangeArg) -> UOp:
    if arg.axis_type is LaterAxisType.DEVICE:
        return UOp(Op.RANGE, *src, arg=RangeArg(arg.id), tag=DEVICE_TAG)
    return UOp(Op.RANGE, *src, arg=RangeArg(arg.id, AxisType[arg.axis_type.name]))


def _write_range(writing: Writing, u: UOp) -> Form:
    arg = arg_of(u, RangeArg)
    later = LaterRangeArg(arg.id, LaterAxisType[arg.axis_type.name])
    return writing.form("RANGE", writing[u.src[0]], arg=later)


def _read_unshard(reading: Reading, src: tuple[UOp, ...], arg: UnshardArg) -> UOp:
    """Concatenate the shards along the axis of each RANGE, one shard per value of the RANGE."""
    t, *ranges = src
    if len(ranges) != len(arg.axes) or len(set(arg.axes)) != len(arg.axes):
        raise reading.broken("UNSHARD.axes", f"{arg.axes}")
    for r, axis in zip(ranges, arg.axes, strict=True):
        if r.op is not Op.RANGE or r.tag != DEVICE_TAG or r.src[0].op is not Op.CONST:
            raise reading.broken("UNSHARD.range", r.op.name)
        if not 0 <= axis < len(t.shape):
            raise reading.broken("UNSHARD.rank", f"{axis} for rank {len(t.shape)}")
        t = _side_by_side(reading, t, r, axis)
    return t


def _side_by_side(reading: Reading, t: UOp, r: UOp, axis: int) -> UOp:
    count = int(r.src[0].arg.value)  # type: ignore[union-attr]
    if count < 1 or t.device is not None:
        raise reading.broken("UNSHARD.shards", f"{count} on {t.device}")
    stacked = UOp(Op.STACK, *(t.substitute({r: index_const(i)}) for i in range(count)))
    order = (*range(1, axis + 1), 0, *range(axis + 1, len(stacked.shape)))
    moved = UOp(Op.PERMUTE, stacked, arg=PermuteArg(order))
    wide = (*t.shape[:axis], count * t.shape[axis], *t.shape[axis + 1 :])
    return UOp(Op.RESHAPE, moved, dims(wide))


JULY_2026 = Edition(
    "2026-07",
    "The later form of the specification, as far as its facts are known.",
    core_words()
    | by_name(
        TITLES,
        Word("EXPAND", ("T", "n"), _read_expand),
        Word("REDUCE", ("T", "r*"), _read_reduce, LeadingArg),
        Word("RANGE", ("bound",), _read_range, LaterRangeArg),
        Word(
            "UNSHARD",
            ("T", "r*"),
            _read_unshard,
            UnshardArg,
            "The shards of each RANGE side by side along its axis.",
        ),
    ),
    {
        Op.EXPAND: _write_expand,
        Op.REDUCE: _write_reduce,
        Op.RESHAPE: _write_reshape,
        Op.RANGE: _write_range,
    },
    {type.value: type.name for type in LaterAxisType},
)
