"""Generate level graph, pairs: one op on another, on a shared operand, with constants.

Most rewrites look for two ops and a constant, which a random graph almost never holds together.
Here each pair of listed ops has its turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain, count, permutations, product, zip_longest
from math import prod

import numpy as np

from uop.conformance.suite import values
from uop.conformance.suite.choices import Choices, CountedChoices
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.graph.steps import FOLDS, VIEWS, either_way
from uop.conformance.suite.levels.group import Counts, Generated, Group, group, program
from uop.conformance.suite.levels.op.elementwise import guarded, rewrite_constants
from uop.conformance.suite.vocabulary import Vocabulary
from uop.interpreter.numeric.storage import Array
from uop.spec.args import DTypeArg, PadFill
from uop.spec.dtype import INTS, VALUES, DType, Number, dtypes
from uop.spec.frontend.tensor import Tensor
from uop.spec.graph import slots_of
from uop.spec.ops.names import CONVERSIONS, Op
from uop.spec.registry import DECLARATIONS, Shape
from uop.spec.uop import UOp, const, param

COUNTS = (2, 36, 120)
TOGETHER = 16
"""The pairs in one program; each is an output."""
ARITHMETIC = (Op.ADD, Op.SUB, Op.MUL)
FEW = 16
"""An input of fewer elements is folded."""
IN_SMOKE = ("int8", "int32", "uint32", "float32")
"""The dtypes of a smoke run, and those on which it has all patterns of rewrites."""

NUMBERS = 3
"""The first constants that rewrites look for: of a float 0, -0 and 1, of an integer 0, 1 and 2."""
LENGTH = 65
"""One more than a tile of any usual width."""
SIDE = 3
X, Y, CONDITION, LEFT, RIGHT, SQUARE, ROW, COLUMN, ONCE = range(9)
"""The slots of the inputs."""
SHAPES: dict[int, Shape] = {
    **dict.fromkeys((X, Y, CONDITION, LEFT, RIGHT), (LENGTH,)),
    **{SQUARE: (SIDE, SIDE), ROW: (1, SIDE), COLUMN: (SIDE, 1), ONCE: (1, 1)},
}
FITTING = {SHAPES[slot]: slot for slot in (Y, SQUARE, ROW, COLUMN, ONCE)}
"""The inputs that serve as divisors or counts of shifts instead of a computed value."""
NEIGHBOURS = 4


@dataclass(frozen=True, slots=True)
class Operands:
    """Builds the operands of one pair, and applies ops that take their dtypes."""

    choices: Choices
    dtype: DType
    vocabulary: Vocabulary
    turns: Iterator[int]
    """Chooses constants and the targets of conversions."""

    def input(self, slot: int) -> UOp:
        return param(slot, SHAPES[slot], dtypes.bool if slot == CONDITION else self.dtype)

    @property
    def x(self) -> UOp:
        return self.input(X)

    @property
    def y(self) -> UOp:
        return self.input(Y)

    @property
    def condition(self) -> UOp:
        """Return a bool input, or a comparison where no bool is listed."""
        compares = self.vocabulary.on(self.dtype).comparisons
        if dtypes.bool.name in self.vocabulary.dtypes or not compares:
            return self.input(CONDITION)
        return UOp(compares[0], self.input(LEFT), self.input(RIGHT))

    def constant(self, dtype: DType, fits: Op | None = None) -> UOp:
        """Return one of those that rewrites look for, by turns; one in eight is a special one."""
        column, place = rewrite_constants(dtype), next(self.turns)
        if self.choices.chance(12):
            column, place = values.specials(dtype), self.choices.below(1 << 16)
        value = column[place % len(column)].reshape(1)
        if fits and DECLARATIONS[fits].is_partial:
            value = guarded(fits, (dtype, dtype), [value, value])[1]
        return nodes.constant(value, dtype)

    def one(self, op: Op, a: UOp) -> UOp:
        """Apply an op to a value; a conversion goes to another dtype."""
        if op not in CONVERSIONS:
            return UOp(op, self.taken(op, a))
        others = [d for d in targets(op, a.dtype, self.vocabulary) if d is not a.dtype]
        return UOp(op, a, arg=DTypeArg(others[next(self.turns) % len(others)])) if others else a

    def two(self, op: Op, a: UOp, b: UOp | None) -> UOp:
        """An op on two values, without the second on a value and a constant.

        A divisor or a count of a shift is a constant or an input, which can be made to fit.
        """
        a = self.taken(op, a)
        if b is None:
            b = self.constant(a.dtype, op)
        elif DECLARATIONS[op].is_partial and b.op not in (Op.CONST, Op.PARAM):
            a, b = self.home(a), self.input(FITTING[b.shape])
        elif b.dtype is not a.dtype:
            a, b = self.home(a), self.home(b)
        return UOp(op, a, b)

    def constant_first(self, op: Op, b: UOp) -> UOp:
        b = self.taken(op, b)
        return self.two(op, self.constant(b.dtype), b)

    def taken(self, op: Op, a: UOp) -> UOp:
        return a if a.dtype in DECLARATIONS[op].dtypes else self.home(a)

    def home(self, a: UOp) -> UOp:
        """Convert back to the dtype of the pair."""
        return a if a.dtype is self.dtype else nodes.cast(a, self.dtype)

    def negated(self, condition: UOp) -> UOp:
        return UOp(Op.NOT, condition) if self.vocabulary.has(Op.NOT) else condition

    def view(self, a: UOp) -> UOp:
        """Move a value within its own shape, by ops that the vocabulary has."""
        for view, _, _ in self.choices.shuffled(VIEWS):
            moved = view(self.choices, a)
            if self.vocabulary.speaks(moved, {a}):
                return moved
        return a

    def where(self, a: UOp | None, b: UOp | None, condition: UOp | None = None) -> UOp:
        """Build a WHERE; a branch that is None is a constant."""
        branches = (self.constant(self.dtype) if branch is None else branch for branch in (a, b))
        return UOp(Op.WHERE, self.condition if condition is None else condition, *branches)

    def where_either(self, a: UOp, b: UOp | None) -> UOp:
        """Build a WHERE with the branches in this order or the other."""
        return self.where(a, b) if self.choices.chance(50) else self.where(b, a)


@cache
def targets(op: Op, dtype: DType, vocabulary: Vocabulary) -> tuple[DType, ...]:
    """Return the dtypes that a value of a dtype is converted to."""
    kinds = [d for d in vocabulary.of_dtypes(VALUES) if d is not dtypes.index]
    if op is Op.CAST:
        return tuple(kinds)
    return tuple(d for d in kinds if d.itemsize == dtype.itemsize and dtypes.bool not in (d, dtype))


@cache
def neighbours(dtype: DType, vocabulary: Vocabulary) -> tuple[DType, ...]:
    """Return a narrower, a wider and an equally wide dtype of integers or floats, as far as listed.

    Then comes one of the other kind. Where one is missing, the one before stands for it.
    """
    kinds = [d for d in targets(Op.CAST, dtype, vocabulary) if d not in (dtype, dtypes.bool)]
    of_kind = sorted((d for d in kinds if d.is_float == dtype.is_float), key=lambda d: d.bits)
    rows = (
        [d for d in of_kind if d.bits < dtype.bits][-1:],
        [d for d in of_kind if d.bits > dtype.bits][:1],
        [d for d in of_kind if d.bits == dtype.bits],
        [d for d in kinds if d.is_float != dtype.is_float and d.bits == max(dtype.bits, 16)],
    )
    found = [row[0] for row in rows if row]
    return tuple((found or [dtype])[k % max(len(found), 1)] for k in range(NEIGHBOURS))


@dataclass(frozen=True, slots=True)
class Pair:
    """A form and the ops in it."""

    form: Callable[..., UOp]
    ops: tuple[Op, ...]
    turn: int = 0
    """Chooses the constants."""

    def made(self, choices: Choices, dtype: DType, vocabulary: Vocabulary, turn: int = 0) -> UOp:
        return self.form(Operands(choices, dtype, vocabulary, count(self.turn + turn)), *self.ops)


def _same_constant(o: Operands, f: Op, g: Op) -> UOp:
    """f(g(x, c), c)."""
    inner = o.two(g, o.x, None)
    return o.two(f, inner, inner.src[1])


def _same_on_both(o: Operands, f: Op, g: Op) -> UOp:
    """f(g(x, c), g(y, c))."""
    first = o.two(g, o.x, None)
    return o.two(f, first, UOp(first.op, o.taken(g, o.y), first.src[1]))


def _undone(o: Operands, f: Op) -> UOp:
    """f(f(x, c), d) of a float, where d would undo c without overflow and rounding."""
    form = o.dtype.format
    exponent = form.bias * 3 // 4 if f is Op.MUL else form.precision
    pair = (2.0**exponent, 2.0**-exponent if f is Op.MUL else -(2.0**exponent))
    first, second = (const(number, o.dtype) for number in pair)
    return o.two(f, o.two(f, o.x, first), second)


def _on_both(o: Operands, f: Op, u: Op) -> UOp:
    """Build f(u(x), u(y)), to one dtype where u converts."""
    first = o.one(u, o.x)
    return o.two(f, first, UOp(u, o.y, arg=first.arg) if first.op is u else o.y)


def _converted(towards: int, o: Operands, f: Op) -> UOp:
    """Build f(CAST x, c), and f(CAST x, CAST y) where the first is odd."""
    target = neighbours(o.dtype, o.vocabulary)[towards // 2]
    first = nodes.cast(o.x, target)
    return o.two(f, first, nodes.cast(o.y, target) if towards % 2 else None)


def _padded(u: UOp) -> UOp:
    return nodes.pad(u, (1,) * len(u.shape), (s + 2 for s in u.shape), PadFill.ZERO)


def _number(number: int, is_first: bool, o: Operands, g: Op | None = None) -> UOp:
    """Select between a number and a constant, or between a number and g(x, y)."""
    branch, other = const(number, o.dtype), o.two(g, o.x, o.y) if g else None
    return o.where(branch, other) if is_first else o.where(other, branch)


def _two_numbers(first: int, second: int, o: Operands) -> UOp:
    """Select between two of the numbers that rewrites look for first."""
    numbers = rewrite_constants(o.dtype)
    return o.where(*(nodes.constant(numbers[k % len(numbers)], o.dtype) for k in (first, second)))


def _same_branches(o: Operands, c: Op) -> UOp:
    """Use one value for both branches, which is shorter than the condition along some axis."""
    value = o.input(o.choices.pick((ROW, COLUMN, ONCE)))
    return o.where(value, value, UOp(c, o.input(SQUARE), value))


def _compared_twice(o: Operands, c: Op) -> UOp:
    """Select one of three numbers by the order of x and y."""
    a, b = o.x, o.y if o.choices.chance(50) else o.constant(o.dtype)
    return o.where(None, o.where(None, None, UOp(c, b, a)), UOp(c, a, b))


def _compared(o: Operands, c: Op) -> UOp:
    """Select one of two values by their comparison, either way round."""
    a, b = o.x, o.y if o.choices.chance(50) else o.constant(o.dtype)
    return UOp(Op.WHERE, UOp(c, a, b), *either_way(o.choices, a, b))


def _fold_of_copies(slot: int, axes: tuple[int, ...], o: Operands, r: Op) -> UOp:
    return nodes.fold(r, nodes.expand(o.input(slot), (SIDE, SIDE)), axes)


FORMS: tuple[tuple[str, Callable[..., UOp]], ...] = (
    ("f", lambda o, f: o.two(f, o.x, o.x)),
    ("fg", lambda o, f, g: o.two(f, o.y, o.two(g, o.x, o.y))),
    ("fg", lambda o, f, g: o.two(f, o.two(g, o.x, o.y), o.x)),
    ("fg", lambda o, f, g: o.two(f, o.two(g, o.x, o.y), o.y)),
    ("fg", lambda o, f, g: o.two(f, o.two(g, o.x, None), None)),
    ("fg", lambda o, f, g: o.constant_first(f, o.two(g, o.x, None))),
    ("fg", lambda o, f, g: o.two(f, o.constant_first(g, o.y), None)),
    ("fg", lambda o, f, g: o.two(f, o.two(g, o.x, o.x), None)),
    ("uu", lambda o, u, v: o.one(u, o.one(v, o.x))),
    ("ug", lambda o, u, g: o.one(u, o.two(g, o.x, o.y))),
    ("ug", lambda o, u, g: o.one(u, o.two(g, o.x, o.x))),
    ("uc", lambda o, u, c: o.one(u, UOp(c, o.x, o.y))),
    ("fu", _on_both),
    ("fu", lambda o, f, u: o.two(f, o.one(u, o.x), o.x)),
    ("fu", lambda o, f, u: o.two(f, o.one(u, o.x), None)),
    ("u", lambda o, u: o.one(u, o.constant(o.dtype))),
    *(("", partial(_number, *row)) for row in product((0, 1), (True, False))),
    *(("", partial(_two_numbers, *places)) for places in permutations(range(NUMBERS), 2)),
    ("", lambda o: o.where_either(o.x, None)),
    ("c", _same_branches),
    ("g", lambda o, g: o.where_either(o.two(g, o.x, o.y), o.y)),
    ("c", _compared),
    ("f", lambda o, f: o.two(f, o.where(None, None), None)),
    ("f", lambda o, f: o.two(f, o.where(o.x, o.y), o.where(o.y, None))),
    ("", lambda o: o.where_either(o.where(o.x, o.y), None)),
    ("f", lambda o, f: o.two(f, o.input(SQUARE), o.view(o.input(SQUARE)))),
    ("g", lambda o, g: o.view(o.two(g, o.input(SQUARE), None))),
    ("f", lambda o, f: o.two(f, nodes.reshape(o.y, (LENGTH, 1)), o.y)),
    *(
        ("r", partial(_fold_of_copies, slot, axes))
        for slot, axes in product((ONCE, ROW, COLUMN), ((0,), (0, 1)))
    ),
    ("rg", lambda o, r, g: nodes.fold(r, o.home(o.two(g, o.input(SQUARE), None)), (0,))),
    ("rg", lambda o, r, g: nodes.fold(r, o.home(o.two(g, o.input(SQUARE), None)), (0, 1))),
    *(("g", partial(_number, *row)) for row in product((0, 1), (True, False))),
    ("fg", _same_constant),
    ("n", _undone),
    ("g", lambda o, g: o.home(o.one(Op.CAST, o.two(g, o.x, o.y)))),
    ("c", _compared_twice),
    ("", lambda o: nodes.expand(nodes.expand(o.input(ONCE), (1, SIDE)), (2, SIDE))),
    ("rr", lambda o, r, s: nodes.fold(r, nodes.fold(s, o.input(SQUARE), (0,)), (1,))),
    ("fg", lambda o, f, g: o.two(f, o.x, o.two(g, o.x, o.y))),
    ("fg", lambda o, f, g: o.two(f, o.x, o.two(g, o.x, None))),
    ("fg", lambda o, f, g: o.constant_first(f, o.constant_first(g, o.y))),
    ("ug", lambda o, u, g: o.one(u, o.two(g, o.x, None))),
    ("fu", lambda o, f, u: o.two(f, o.x, o.one(u, o.y))),
    ("fu", lambda o, f, u: o.two(f, o.x, o.one(u, o.x))),
    ("fu", lambda o, f, u: o.constant_first(f, o.one(u, o.x))),
    *(("f", partial(_converted, towards)) for towards in range(2 * NEIGHBOURS)),
    ("", lambda o: o.where(o.x, o.x)),
    ("c", lambda o, c: o.where(o.x, o.x, UOp(c, o.x, o.y))),
    ("g", lambda o, g: o.two(g, _padded(o.input(SQUARE)), None)),
    ("g", lambda o, g: _padded(o.two(g, o.input(SQUARE), None))),
    ("rg", lambda o, r, g: nodes.fold(r, o.home(_padded(o.two(g, o.input(SQUARE), None))), (0,))),
    ("fg", _same_on_both),
    ("c", lambda o, c: o.where(o.x, o.y, o.negated(UOp(c, o.x, o.y)))),
    ("cg", lambda o, c, g: o.where(o.x, o.y, o.two(c, o.two(g, o.x, None), None))),
    ("", lambda o: o.view(o.view(o.input(SQUARE)))),
    ("f", lambda o, f: o.two(f, *(o.view(o.input(slot)) for slot in (SQUARE, SQUARE)))),
    ("r", lambda o, r: nodes.fold(r, o.view(o.input(SQUARE)), (0,))),
    ("r", lambda o, r: o.view(nodes.fold(r, o.input(SQUARE), (1,)))),
    ("fr", lambda o, f, r: o.two(f, o.input(SQUARE), nodes.fold(r, o.input(SQUARE), (0,)))),
    ("fr", lambda o, f, r: o.two(f, nodes.fold(r, o.input(SQUARE), (1,)), None)),
    ("ru", lambda o, r, u: nodes.fold(r, o.home(o.one(u, o.input(SQUARE))), (1,))),
    ("ur", lambda o, u, r: o.one(u, nodes.fold(r, o.input(SQUARE), (0, 1)))),
    ("grr", lambda o, g, *rs: o.two(g, *(nodes.fold(r, o.input(SQUARE), (0,)) for r in rs))),
)
"""Each with a letter for each op: f has two operands, and so has g, which compares nothing; c
compares, u has one operand, r folds, n is arithmetic of floats."""


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    for dtype in vocabulary.of_dtypes(VALUES):
        if dtype is not dtypes.index and any(_forms(dtype, vocabulary)):
            yield group("graph", None, dtype, "pairs", COUNTS, _pairs, dtype, vocabulary)


def _pairs(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Build the next pairs; after the last pair the first one follows, with other constants."""
    every = pairs(dtype, vocabulary)
    first = own_share(dtype, len(every)) + TOGETHER * index
    places = range(first, first + TOGETHER)
    chosen = ((every[k % len(every)], turn_of(dtype, k // len(every))) for k in places)
    made = [pair.made(choices, dtype, vocabulary, turn) for pair, turn in chosen]
    root = nodes.outputs(*dict.fromkeys(filter(vocabulary.speaks, made)) or made)
    return program(root, *data_for(root, choices))


def own_share(dtype: DType, count: int) -> int:
    """Return where a dtype begins, so that those of one kind share out what one program each has.

    Signed and unsigned integers take turns.
    """
    kind = [d for d in VALUES if d.kind is dtype.kind]
    if dtype.is_int:
        kind = sorted(INTS, key=lambda d: (d.bits, d.name))
    return count * kind.index(dtype) // len(kind)


def turn_of(dtype: DType, rounds: int) -> int:
    """Return what chooses constants: another one for each dtype and round."""
    return 2 * list(VALUES).index(dtype) + rounds


def data_for(root: UOp, choices: Choices) -> list[dict[int, Array]]:
    """Return batches of crossed values, special values, and mixed ones; a fold gets ordinary ones.

    The first two inputs of a program are crossed.
    """
    inputs, mixed = slots_of(root).items(), (values.draw_mixed, values.draw_ordinary)
    return [
        {k: fitting_data(u, root, choices, _crossed(k)) for k, u in inputs},
        {k: fitting_data(u, root, choices, values.draw_special) for k, u in inputs},
        {k: fitting_data(u, root, choices, mixed[prod(u.shape) < FEW]) for k, u in inputs},
    ]


def ordinary_first(root: UOp, choices: Choices) -> list[dict[int, Array]]:
    """Return batches for small inputs: of distinct values, special values, and mixed ones."""
    draws = (values.draw_ordinary, values.draw_special, values.draw_mixed)
    inputs = slots_of(root).items()
    return [{k: fitting_data(u, root, choices, draw) for k, u in inputs} for draw in draws]


def drawn(*draws: values.Draw) -> Data:
    """Return what draws a batch by each of these."""

    def batches(root: UOp, choices: Choices) -> list[dict[int, Array]]:
        inputs = slots_of(root).items()
        return [
            {k: values.sample(draw, u.dtype, u.shape, choices) for k, u in inputs} for draw in draws
        ]

    return batches


def _crossed(slot: int) -> values.Draw:
    """Draw a column of crossed values; special ones for the third input and later."""

    def draw(dtype: DType, n: int, key: int) -> Array:
        if slot > 1:
            return values.draw_special(dtype, n, key)
        return np.resize(values.crossed(dtype)[slot], n)

    return draw


def fitting_data(u: UOp, root: UOp, choices: Choices, draw: values.Draw) -> Array:
    """Return data for an input, which fits if it is a divisor or the count of a shift."""
    data = values.sample(draw, u.dtype, u.shape, choices)
    for user in root.toposort():
        if user.declaration.is_partial and user.src[1] is u:
            data = guarded(user.op, (user.dtype, u.dtype), [data, data])[1]
    return data


@cache
def pairs(dtype: DType, vocabulary: Vocabulary) -> tuple[Pair, ...]:
    """Return all pairs of a dtype: one of each form, then a second one of each."""
    order = CountedChoices(0, dtype.kind.value)
    forms = order.shuffled(list(_forms(dtype, vocabulary)))
    rows = zip_longest(*(order.shuffled(form) for form in forms))
    made = (pair for pair in chain.from_iterable(rows) if pair is not None)
    return tuple(_in_turn(pair for pair in made if _is_in(vocabulary, pair, dtype)))


def _in_turn(every: Iterable[Pair]) -> Iterator[Pair]:
    """Let the pairs of one outer op take turns in choosing constants."""
    turns: Counter[tuple[Op, ...]] = Counter()
    for pair in every:
        yield replace(pair, turn=turns[pair.ops[:1]])
        turns[pair.ops[:1]] += 1


def _forms(dtype: DType, vocabulary: Vocabulary) -> Iterator[list[Pair]]:
    """Yield the pairs of each form of which the vocabulary has the first."""
    ops = vocabulary.on(dtype)
    g, c, u = ops.binary + ops.binary_wide, ops.comparisons, ops.unary + ops.unary_wide
    u += tuple(op for op in vocabulary.of(CONVERSIONS) if len(targets(op, dtype, vocabulary)) > 1)
    n = vocabulary.of(ARITHMETIC) if dtype.is_float else ()
    listed = {"f": g + c, "g": g, "c": c, "u": u, "r": vocabulary.of(FOLDS), "n": n}
    for places, build in FORMS:
        every = product(*(listed[place] for place in places))
        form = [Pair(build, chosen) for chosen in every]
        if form and _is_in(vocabulary, form[0], dtype):
            yield form


def _is_in(vocabulary: Vocabulary, pair: Pair, dtype: DType) -> bool:
    if vocabulary.is_whole:
        return True
    return vocabulary.speaks(pair.made(CountedChoices(0, ""), dtype, vocabulary))


@dataclass(frozen=True, slots=True)
class Plan:
    """What the program of one dtype is made from."""

    dtype: DType
    vocabulary: Vocabulary
    choices: Choices
    index: int
    given: dict[int, Array] = field(default_factory=dict)
    """The inputs whose data goes with how the program is built, by slot."""

    def inputs(self, count: int, shape: Shape = (LENGTH,)) -> list[UOp]:
        return [param(slot, shape, self.dtype) for slot in range(count)]

    def tensors(self, count: int, shape: Shape = (LENGTH,)) -> list[Tensor]:
        return [*map(Tensor, self.inputs(count, shape))]

    def const(self, value: Number) -> UOp:
        return const(value, self.dtype)

    def of(self, *ops: Op) -> tuple[Op, ...]:
        """Return those ops that the vocabulary has on the dtype."""
        return self.vocabulary.of(ops, self.dtype)

    @property
    def folds(self) -> tuple[Op, ...]:
        return self.of(*FOLDS) or FOLDS


Results = Callable[[Plan], Iterable[UOp] | Iterable[Tensor]]
Build = Callable[[Plan], Generated]
Data = Callable[[UOp, Choices], list[dict[int, Array]]]
"""Draws batches for a program."""
CountsOf = Callable[[DType, Vocabulary], Counts]


@dataclass(frozen=True, slots=True)
class Kind:
    """Programs of one kind on some dtypes; none where their numbers are 0."""

    name: str
    counts: Counts | CountsOf
    on: Container[DType]
    build: Build


class Kinds(list[Kind]):
    """Kinds of programs, in the order of their definitions."""

    def add(
        self, name: str, counts: Counts | CountsOf, on: Container[DType], data: Data = data_for
    ) -> Callable[[Results], Results]:
        """Decorate what yields results: a program returns those that the vocabulary has."""

        def decorated(results: Results) -> Results:
            def build(p: Plan) -> Generated:
                every = (u.uop if isinstance(u, Tensor) else u for u in results(p))
                root = nodes.outputs(*dict.fromkeys(filter(p.vocabulary.speaks, every)))
                return program(root, *(batch | p.given for batch in data(root, p.choices)))

            self.append(Kind(name, counts, on, build))
            return results

        return decorated

    def groups(
        self, vocabulary: Vocabulary, in_smoke: Collection[str] = IN_SMOKE
    ) -> Iterator[Group]:
        """Yield the groups of each dtype; a smoke run has those of few dtypes."""
        for dtype in vocabulary.of_dtypes(VALUES):
            for kind in self if dtype is not dtypes.index else ():
                counts = kind.counts(dtype, vocabulary) if callable(kind.counts) else kind.counts
                few = counts[0] if dtype.name in in_smoke else 0
                args = (kind.build, dtype, vocabulary)
                made = group("graph", None, dtype, kind.name, (few, *counts[1:]), _planned, *args)
                if dtype in kind.on and any(counts) and _has_first(made, vocabulary):
                    yield made


def _planned(
    build: Build, dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int
) -> Generated:
    return build(Plan(dtype, vocabulary, choices, index))


def _has_first(group: Group, vocabulary: Vocabulary) -> bool:
    """Return whether a vocabulary has what the first program holds; the whole language has it.

    A TUPLE is packaging, which a backend without it does without.
    """
    if vocabulary.is_whole:
        return True
    root = group.build(CountedChoices(0, ""), 0).root
    values = root.src if root.op is Op.TUPLE else (root,)
    return len(root.src) > 0 and all(map(vocabulary.speaks, values))


def just_given(root: UOp, choices: Choices) -> list[dict[int, Array]]:
    """Return one batch, of what the builder gives."""
    return [{}]
