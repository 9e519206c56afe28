"""Generate level function: random graphs computed by nested FUNCTIONs, and the same without any;
bodies that compare with a variable.

A part of a grown graph becomes a body. The values that it uses from outside become its arguments.
Further FUNCTIONs compute the arguments and the body itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.graph.growth import has_meaning
from uop.conformance.suite.levels.graph.random_graph import Flavour, flavours_in, grown, on_data
from uop.conformance.suite.levels.graph.steps import CALLED, FOLDS
from uop.conformance.suite.levels.group import Generated, Group, group, with_data
from uop.conformance.suite.values import draw_ordinary
from uop.conformance.suite.vocabulary import Vocabulary
from uop.spec.dtype import DType, Kind, dtypes
from uop.spec.frontend.tensor import Tensor
from uop.spec.graph import all_replaced, inlined, outside_bodies, toposort
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, index_const, param, variable

HOMES: dict[str, tuple[str, ...]] = {
    "integers": ("int8", "int32", "int64", "uint16", "uint64"),
    "floats": ("float32", "float64"),
    "small-floats": ("float16", "bfloat16", "fp8e5m2"),
}
"""The dtypes that graphs start with, by the flavour in which they grow."""

ARGUED = (dtypes.int32, dtypes.float32, dtypes.uint8, dtypes.int64)
"""The dtypes of calls that are listed: what may be mixed up in one does not depend on the dtype."""

DEEPEST = 3
MOST_CUTS = 4


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    for _, flavour in flavours_in(vocabulary, HOMES):
        for home in flavour.homes:
            for kind, build, counts in KINDS:
                args = (home, flavour)
                yield group("function", None, home, kind, counts, build, *args, needs=CALLED)
    needs = (*CALLED, Op.STACK, Op.CMPLT, Op.CMPNE, Op.WHERE, Op.CAST, Op.MOD, Op.ADD)
    for dtype in (dtypes.int32, dtypes.float32, dtypes.uint8):
        yield group("function", None, dtype, "ranges", (1, 2, 12), _ranges, dtype, needs=needs)
    for dtype in vocabulary.of_dtypes(ARGUED):
        for name, listed in (("arguments", _arguments), ("on-memory", _on_memory)):
            both, held = (dtype, vocabulary), (*CALLED, Op.SUB, Op.MUL)
            yield group("function", None, dtype, name, (1, 2, 12), listed, *both, needs=held)


def _nested(home: DType, flavour: Flavour, choices: Choices, index: int) -> Generated:
    """Build FUNCTIONs that call FUNCTIONs, with arguments that other FUNCTIONs return."""
    growth = grown(home, flavour, choices)
    return on_data(growth, nodes.outputs(*outlined(choices, growth.outputs(), DEEPEST)))


def _twin(home: DType, flavour: Flavour, choices: Choices, index: int) -> Generated:
    """Build a graph with FUNCTIONs, and as its twin the same graph without any."""
    growth = grown(home, flavour, choices)
    called = nodes.outputs(*outlined(choices, growth.outputs(), DEEPEST - 1))
    return on_data(growth, nodes.outputs(*called.src, *inlined(called).src))


def _shared(home: DType, flavour: Flavour, choices: Choices, index: int) -> Generated:
    """Build one body called twice: with its arguments in another order, or with its own results."""
    growth = grown(home, flavour, choices)
    first = outlined(choices, growth.outputs(), 1)
    body, *arguments = first[0].src[0].src
    pool = [*first, *arguments]
    others = [choices.pick(_like(a, choices.shuffled(pool)) or [a]) for a in arguments]
    if others == arguments:
        others[0] = growth.input(arguments[0].dtype, arguments[0].shape)
    root = nodes.outputs(*first, *nodes.call(body.src, *others))
    inputs = {slot: data for slot, (data, _) in growth.inputs.items()}
    return on_data(growth, root if has_meaning(root, inputs) else nodes.outputs(*first))


def _ranges(dtype: DType, choices: Choices, index: int) -> Generated:
    """Compare places with a variable of a body, at both ends of its range and at a place inside.

    The largest number of one range is a place, that of the other is larger. Fold rows whose size is
    a variable, by what is no zero for a zero.
    """
    count = choices.between(3, 6)
    places = UOp(Op.STACK, *map(index_const, range(count)))
    x, number = param(1, (count,), dtype), nodes.cast(param(0, (), dtypes.int32), dtypes.index)
    found = []
    for high in (choices.between(1, count - 1), choices.between(count, count + 3)):
        low = choices.below(min(high, count))
        n = variable(0, low, high)
        masks = UOp(Op.CMPLT, places, n), UOp(Op.CMPLT, n, places), UOp(Op.CMPNE, places, n)
        body = [UOp(Op.WHERE, mask, x, const(0, dtype)) for mask in masks]
        inside = UOp(Op.ADD, UOp(Op.MOD, number, index_const(high - low + 1)), index_const(low))
        for at in (index_const(low), index_const(high), inside):
            found += nodes.call(body, at, x)
    n = variable(0, 0, 2 * count)
    row = param(1, (n,), dtype)
    one_more = UOp(Op.ADD, row, const(1, dtype))
    is_none = nodes.cast(UOp(Op.CMPEQ, row, const(0, dtype)), dtypes.int32)
    body = [nodes.fold(op, one_more, (0,)) for op in FOLDS] + [nodes.fold(Op.ADD, is_none, (0,))]
    for size in (count, 2 * count, 1):
        part = param(2, (2 * count,), dtype) if size > count else nodes.shrink(x, (0,), (size,))
        found += nodes.call(body, index_const(size), part)
    return with_data(nodes.outputs(*found), choices, draw_ordinary)


def _arguments(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Call bodies of a few ops on arguments in each order, on each other's results, on views and
    constants, with slots left out, and from bodies with other PARAMs of the same slots.
    """
    n = choices.between(2, 5)
    x, y, z = (Tensor(param(slot, (n, n), dtype)) for slot in range(3))
    two, three = (Tensor(k, dtype).reshape(1, 1).expand(n, n) for k in choices.shuffled((2, 3)))
    apart = x - y * two
    pair, every = [apart, y.flip(0)], [apart - z.T, z, x * z, x]
    found = []
    for two_of in (
        *((x, y), (y, x), (x, x), (x - y, x), (y, x * y), (two, y)),
        *((y.T, x), (x, x.T), (x, three), (x, two)),
    ):
        found += _called(pair, *two_of)
    for arguments in ((y, z, x), (z, x, y), (x, z, y), (y - z, x, y), (z, z, y)):
        found += _called(every, *arguments)
    # The results in another order, some of them alone, and a slot that the body leaves out.
    found += _called([every[k] for k in (3, 0, 1)], y, z, x)
    found += [_called(every, z, y, x)[k] for k in (2, 1)]
    found += _called([x - z], y, x, z) + _called([z, two, x], x, y, z)
    # A body that differs in one number, one axis or one order.
    found += _called([x - y * three, pair[1]], x, y)
    found += [_called([x.maximum(k) - y], y, x)[0] for k in (two, three)]
    for other in (x - y * three, y - x * two):
        found += _called([other, y.flip(1)], x, y)
    found += [_called([x.reduce(Op.ADD, axis)], y)[0] for axis in range(2)]
    for times in (2, 3):
        values = [x, y]
        for _ in range(times):
            values = _called(pair, *values)
        found += [*values, *_called(pair, *reversed(values))]
    inner = _called(pair, y, x)
    for outer in (
        [inner[0] - x, inner[1]],
        [*_called(pair, x - y, x), y],
        _called(_called(pair, y, x * y), y, x),
    ):
        found += _called(outer, x, y) + _called(outer, z, x)
    is_first = Tensor(param(2, (n, n), dtypes.bool)).where(x, y)
    gate = Tensor(param(3, (n, n), dtypes.bool))
    found += _called([is_first], x, z, gate) + _called([is_first], z, x, ~gate)
    for t in (x - y, z * z):
        # The argument is used beside the result.
        for one in (x * two, x.flip(0)):
            (result,) = _called([one], t)
            found += [result - t, result * t]
    found += _alike(x, y, z)
    heard = dict.fromkeys(filter(vocabulary.speaks, (t.uop for t in found)))
    return with_data(nodes.outputs(*heard), choices, draw_ordinary)


def _called(body: Iterable[Tensor], *arguments: Tensor) -> list[Tensor]:
    return [*map(Tensor, nodes.call((t.uop for t in body), *(t.uop for t in arguments)))]


def _alike(x: Tensor, y: Tensor, z: Tensor) -> Iterator[Tensor]:
    """Call bodies that differ in a shape, a dtype or a number, on parts and views of one value; and
    a body that returns what is absent, an argument twice, and a number.
    """
    dtype, n, one = x.dtype, len(x), Tensor(1, x.dtype)
    narrow = dtypes.float16 if dtype.is_float else dtypes.int8

    def called(u: Tensor, v: Tensor, number: int = 7) -> list[Tensor]:
        a, b = (Tensor(param(slot, u.shape, u.dtype)) for slot in range(2))
        apart = a - b * number
        return _called([apart.reduce(Op.MAX, 0), apart, b.flip()], u, v)

    for shape in ((1, n), (n, 1), (1, 1), (0, n), (n - 1, n)):
        yield from called(x.shrink_to(shape), y.shrink_to(shape))
    yield from (*called(x, y), *called(x, y, 5)[:2])
    yield from called(x.cast(narrow), y.cast(narrow))[:2]
    rows = [x.shrink((k, k + n - 1), (0, n)) for k in range(2)]
    for u in (rows[0], rows[0].flip(0)):
        yield from (*called(u, rows[1])[:2], *called(rows[1], u)[1:])
    a, b = (Tensor(param(slot, x.shape, dtype)) for slot in range(2))
    edged = a.shrink((1, n), (0, n)).pad((0, 1), (0, 0))
    for u in (x, rows[0].pad((1, 0), (0, 0))):
        found = _called([edged, edged - b, b, one, b], u, z)
        yield from ((one - value).reduce(Op.ADD, 0) for value in found[:2])
        yield from found[2:]


def _on_memory(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Call one body on buffers and parts of them, before and after a STORE of a result; store a
    result before and after its argument changes.
    """
    n = choices.between(3, 5)
    x, y = (param(slot, (n, n), dtype) for slot in range(2))
    body = [UOp(Op.SUB, x, UOp(Op.MUL, y, const(3, dtype))), nodes.permute(x, (1, 0))]
    effects, slots = list[UOp](), count(2)

    def buffer() -> UOp:
        return nodes.buffer(next(slots), (n, n), dtype)

    for turn in range(4):
        own, out, more = buffer(), buffer(), buffer()
        arguments = (own, x) if turn % 2 else (y, own)
        results = nodes.call(body, *arguments)
        first = nodes.store(own, results[turn // 2])
        later = UOp(Op.AFTER, own, first)
        again = nodes.call(body, *(later if u is own else u for u in arguments))
        second = nodes.store(out, again[0])
        both = nodes.call(body, UOp(Op.AFTER, out, second), later)
        effects.append(nodes.store(more, UOp(Op.SUB, *both)))
    own, out = buffer(), buffer()
    rows = [nodes.shrink(own, (k, 0), (n - 1, n)) for k in range(2)]
    small = [param(k, (n - 1, n), dtype) for k in range(2)]
    (apart,) = nodes.call([UOp(Op.SUB, *small)], *rows)
    effects.append(nodes.store(nodes.shrink(own, (1, 0), (n - 1, n)), apart))
    for value in (*(UOp(Op.CONTIGUOUS, u) for u in (x, nodes.flip_all(x))), body[0]):
        own, other, kept, late = (buffer() for _ in range(4))
        (result,) = nodes.call([value], own, other)
        old = UOp(Op.AFTER, own, nodes.store(kept, result))
        change = nodes.store(old, nodes.call(body, other, own)[0])
        effects.append(nodes.store(UOp(Op.AFTER, late, change), result))
    one, two = buffer(), buffer()
    ready = UOp(Op.AFTER, one, nodes.store(out, one))
    effects.append(nodes.store(ready, nodes.call(body, two, ready)[0]))
    heard = filter(vocabulary.speaks, effects)
    return with_data(UOp(Op.SINK, *heard), choices, draw_ordinary, draw_ordinary)


KINDS = (
    ("nested", _nested, (1, 4, 80)),
    ("shared", _shared, (1, 4, 60)),
    ("twin", _twin, (1, 2, 40)),
)


def outlined(choices: Choices, values: Sequence[UOp], depth: int) -> list[UOp]:
    """Return the same values from a FUNCTION; its body and arguments may be outlined too."""
    inside = cuts(choices, values)
    reached = toposort(values, lambda u: () if u in inside else outside_bodies(u))
    inputs = [u for u in reached if u.op is Op.PARAM]
    arguments = choices.shuffled([*inside, *inputs])
    params = {u: param(k, u.shape, u.dtype) for k, u in enumerate(arguments)}
    body = all_replaced(values, params)
    if depth > 1 and choices.chance(50):
        body = outlined(choices, body, depth - 1)
    if depth > 1 and choices.chance(60):
        made = [u for u in arguments if u.op is not Op.PARAM]
        computed = dict(zip(made, outlined(choices, made, depth - 1), strict=True)) if made else {}
        arguments = [computed.get(u, u) for u in arguments]
    if arguments and choices.chance(20):
        arguments.append(choices.pick(arguments))  # Add an argument that the body does not use.
    return nodes.call(body, *arguments)


def cuts(choices: Choices, values: Sequence[UOp]) -> list[UOp]:
    """Select nodes below some values to become the arguments of their FUNCTION."""
    # Constants go into bodies, and inputs are arguments anyway.
    stay = (Op.PARAM, Op.CONST, Op.TUPLE, Op.FUNCTION)
    reached = toposort(values, lambda u: outside_bodies(u) if u.op is Op.FUNCTION else u.data_src)
    made = [u for u in reached if u.op not in stay and u.dtype.kind is not Kind.VOID]
    return choices.shuffled(made)[: choices.below(MOST_CUTS + 1)]


def _like(u: UOp, pool: Sequence[UOp]) -> list[UOp]:
    return [v for v in pool if (v.dtype, v.shape) == (u.dtype, u.shape) and v is not u]
