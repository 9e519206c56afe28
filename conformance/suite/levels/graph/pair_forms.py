"""The forms in which two ops stand together, and the operands that they are put on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from itertools import permutations, product

from uop.conformance.suite import values
from uop.conformance.suite.choices import Choices, chance, pick, shuffled
from uop.conformance.suite.levels.graph.steps import comparisons
from uop.conformance.suite.levels.op.elementwise import constant, guarded, telling
from uop.conformance.suite.levels.op.patterns import BY_FIT
from uop.conformance.suite.levels.op.views import VIEWS
from uop.conformance.suite.vocabulary import Vocabulary, computed
from uop.spec.args import DTypeArg, ReduceArg
from uop.spec.dtype import DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, Shape
from uop.spec.uop import UOp, const, dims, param

TOLD = 3
"""The constants that tell first: two zeros and one of a float, zero, one and two of an integer."""
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
"""The inputs that are divisors or counts of shifts in place of what is computed."""
CONVERSIONS = (Op.CAST, Op.BITCAST)


@dataclass(frozen=True, slots=True)
class Operands:
    """Makes the operands of one pair, and puts ops on them that take their dtypes."""

    choices: Choices
    dtype: DType
    vocabulary: Vocabulary

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
        """A bool that is given, or compared where no bool is listed."""
        compares = comparisons(self.dtype, self.vocabulary)
        if dtypes.bool.name in self.vocabulary.dtypes or not compares:
            return self.input(CONDITION)
        return UOp(compares[0], self.input(LEFT), self.input(RIGHT))

    def constant(self, dtype: DType, fits: Op | None = None) -> UOp:
        """A constant that tells: three times in four one of those that rewrites look for."""
        column = telling(dtype, self.choices)
        few = column[: len(column) - len(values.specials(dtype))]
        if len(few) and chance(self.choices, 75):
            column = few
        value = column[self.choices.below(len(column))].reshape(1)
        if fits in BY_FIT:
            value = guarded(fits, (dtype, dtype), [value, value])[1]
        return constant(value, dtype)

    def one(self, op: Op, a: UOp) -> UOp:
        """An op on a value; a conversion goes to another dtype."""
        if op not in CONVERSIONS:
            return UOp(op, self.taken(op, a))
        others = [d for d in targets(op, a.dtype, self.vocabulary) if d is not a.dtype]
        return UOp(op, a, arg=DTypeArg(pick(self.choices, others))) if others else a

    def two(self, op: Op, a: UOp, b: UOp | None) -> UOp:
        """An op on two values, without the second on a value and a constant.

        A divisor or a count of a shift is a constant or an input, which can be made to fit.
        """
        a = self.taken(op, a)
        if b is None:
            b = self.constant(a.dtype, op)
        elif op in BY_FIT and b.op not in (Op.CONST, Op.PARAM):
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
        """Back in the dtype that the pair is about."""
        return a if a.dtype is self.dtype else UOp(Op.CAST, a, arg=DTypeArg(self.dtype))

    def view(self, a: UOp) -> UOp:
        """Moved within its own shape, in a way that the vocabulary has words for."""
        for made, _, _ in shuffled(self.choices, VIEWS):
            moved = made(self.choices, a)
            if all(map(self.vocabulary.takes, computed(moved, {a}))):
                return moved
        return a

    def fold(self, op: Op, a: UOp, axes: tuple[int, ...] = (0,)) -> UOp:
        return UOp(Op.REDUCE, a, arg=ReduceArg(op, axes))


@cache
def targets(op: Op, dtype: DType, vocabulary: Vocabulary) -> tuple[DType, ...]:
    """What a value of a dtype is converted to."""
    kinds = [d for d in vocabulary.of_dtypes(values.VALUES) if d is not dtypes.index]
    if op is Op.CAST:
        return tuple(kinds)
    return tuple(d for d in kinds if d.itemsize == dtype.itemsize and dtypes.bool not in (d, dtype))


@dataclass(frozen=True, slots=True)
class Pair:
    """A form and the ops in it."""

    form: Callable[..., UOp]
    ops: tuple[Op, ...]

    def made(self, o: Operands) -> UOp:
        return self.form(o, *self.ops)


def _on_itself(o: Operands, f: Op) -> UOp:
    """f(x, x)."""
    return o.two(f, o.x, o.x)


def _behind(slot: int, o: Operands, f: Op, g: Op) -> UOp:
    """f(g(x, y), x) or f(g(x, y), y)."""
    return o.two(f, o.two(g, o.x, o.y), o.input(slot))


def _before(o: Operands, f: Op, g: Op) -> UOp:
    """f(y, g(x, y))."""
    return o.two(f, o.y, o.two(g, o.x, o.y))


def _two_constants(o: Operands, f: Op, g: Op) -> UOp:
    """f(g(x, c), d)."""
    return o.two(f, o.two(g, o.x, None), None)


def _same_constant(o: Operands, f: Op, g: Op) -> UOp:
    """f(g(x, c), c)."""
    inner = o.two(g, o.x, None)
    return o.two(f, inner, inner.src[1])


def _undone(o: Operands, f: Op) -> UOp:
    """f(f(x, c), d) of a float, where d would undo c without overflow and rounding."""
    form = o.dtype.format
    exponent = form.bias * 3 // 4 if f is Op.MUL else form.precision
    pair = (2.0**exponent, 2.0**-exponent if f is Op.MUL else -(2.0**exponent))
    first, second = (const(number, o.dtype) for number in pair)
    return o.two(f, o.two(f, o.x, first), second)


def _constant_before(o: Operands, f: Op, g: Op) -> UOp:
    """f(d, g(x, c))."""
    return o.constant_first(f, o.two(g, o.x, None))


def _constant_inside(o: Operands, f: Op, g: Op) -> UOp:
    """f(g(c, y), d)."""
    return o.two(f, o.constant_first(g, o.y), None)


def _squared(o: Operands, f: Op, g: Op) -> UOp:
    """f(g(x, x), c)."""
    return o.two(f, _on_itself(o, g), None)


def _twice(o: Operands, u: Op, v: Op) -> UOp:
    """u(v(x))."""
    return o.one(u, o.one(v, o.x))


def _of_result(o: Operands, u: Op, g: Op) -> UOp:
    """u(g(x, y))."""
    return o.one(u, o.two(g, o.x, o.y))


def _of_compared(o: Operands, u: Op, c: Op) -> UOp:
    """A truth value as a number, or as the dtype that an op of one operand takes."""
    return o.one(u, UOp(c, o.x, o.y))


def _of_square(o: Operands, u: Op, g: Op) -> UOp:
    """u(g(x, x))."""
    return o.one(u, _on_itself(o, g))


def _there_and_back(o: Operands, g: Op) -> UOp:
    """g(x, y) in another dtype, and back."""
    return o.home(o.one(Op.CAST, o.two(g, o.x, o.y)))


def _on_both(o: Operands, f: Op, u: Op) -> UOp:
    """f(u(x), u(y)), to one dtype where u converts."""
    first = o.one(u, o.x)
    return o.two(f, first, UOp(u, o.y, arg=first.arg) if first.op is u else o.y)


def _on_one(o: Operands, f: Op, u: Op) -> UOp:
    """f(u(x), x)."""
    return o.two(f, o.one(u, o.x), o.x)


def _with_constant(o: Operands, f: Op, u: Op) -> UOp:
    """f(u(x), c)."""
    return o.two(f, o.one(u, o.x), None)


def _of_constant(o: Operands, u: Op) -> UOp:
    """u(c)."""
    return o.one(u, o.constant(o.dtype))


def _choice(o: Operands, a: UOp | None, b: UOp | None, condition: UOp | None = None) -> UOp:
    """WHERE; a branch that is not given is a constant."""
    branches = (o.constant(o.dtype) if branch is None else branch for branch in (a, b))
    return UOp(Op.WHERE, o.condition if condition is None else condition, *branches)


def _number_or_constant(number: int, is_first: bool, o: Operands) -> UOp:
    """One of a number and a constant."""
    given = const(number, o.dtype)
    return _choice(o, given, None) if is_first else _choice(o, None, given)


def _two_numbers(first: int, second: int, o: Operands) -> UOp:
    """One of two of the numbers that rewrites look for first."""
    numbers = telling(o.dtype, o.choices)
    return _choice(o, *(constant(numbers[k % len(numbers)], o.dtype) for k in (first, second)))


def _value_or_constant(o: Operands) -> UOp:
    """One of a value and a constant."""
    return _choice(o, o.x, None) if chance(o.choices, 50) else _choice(o, None, o.x)


def _same_branches(o: Operands, c: Op) -> UOp:
    """One value for both branches, which is shorter than the condition along some axis."""
    value = o.input(pick(o.choices, (ROW, COLUMN, ONCE)))
    return _choice(o, value, value, UOp(c, o.input(SQUARE), value))


def _chosen_result(o: Operands, g: Op) -> UOp:
    """A result, or its own operand."""
    made = o.two(g, o.x, o.y)
    return _choice(o, made, o.y) if chance(o.choices, 50) else _choice(o, o.y, made)


def _number_or_result(number: int, is_first: bool, o: Operands, g: Op) -> UOp:
    """One of a number and g(x, y)."""
    given, made = const(number, o.dtype), o.two(g, o.x, o.y)
    return _choice(o, given, made) if is_first else _choice(o, made, given)


def _compared_twice(o: Operands, c: Op) -> UOp:
    """One of three numbers by how x stands to y."""
    a, b = (o.x, o.y) if chance(o.choices, 50) else (o.x, o.constant(o.dtype))
    return _choice(o, None, _choice(o, None, None, UOp(c, b, a)), UOp(c, a, b))


def _compared_choice(o: Operands, c: Op) -> UOp:
    """One of two values by how they compare, either way round."""
    a, b = (o.x, o.y) if chance(o.choices, 50) else (o.x, o.constant(o.dtype))
    first, second = (a, b) if chance(o.choices, 50) else (b, a)
    return UOp(Op.WHERE, UOp(c, a, b), first, second)


def _behind_choice(o: Operands, f: Op) -> UOp:
    """f(WHERE(p, c, d), e)."""
    return o.two(f, _choice(o, None, None), None)


def _choices_together(o: Operands, f: Op) -> UOp:
    """f(WHERE(p, x, y), WHERE(p, y, c))."""
    return o.two(f, _choice(o, o.x, o.y), _choice(o, o.y, None))


def _chosen_twice(o: Operands) -> UOp:
    """One of a choice and a constant, by the condition of the choice."""
    inner = _choice(o, o.x, o.y)
    return _choice(o, inner, None) if chance(o.choices, 50) else _choice(o, None, inner)


def _beside_view(o: Operands, f: Op) -> UOp:
    """f(x, view of x)."""
    return o.two(f, o.input(SQUARE), o.view(o.input(SQUARE)))


def _view_of_result(o: Operands, f: Op) -> UOp:
    """A view of f(x, c)."""
    return o.view(o.two(f, o.input(SQUARE), None))


def _crossed(o: Operands, f: Op) -> UOp:
    """Each element of a value with each."""
    upright = UOp(Op.RESHAPE, o.y, dims((LENGTH, 1)))
    return o.two(f, upright, o.y)


def _fold_of_copies(slot: int, axes: tuple[int, ...], o: Operands, r: Op) -> UOp:
    """Over axes of which a value repeats along some."""
    return o.fold(r, UOp(Op.EXPAND, o.input(slot), dims((SIDE, SIDE))), axes)


def _copies_of_copies(o: Operands) -> UOp:
    """Repeated along one axis, then along the other."""
    row = UOp(Op.EXPAND, o.input(ONCE), dims((1, SIDE)))
    return UOp(Op.EXPAND, row, dims((2, SIDE)))


def _two_folds(o: Operands, f: Op, r: Op, s: Op) -> UOp:
    """Of one value along the same axis."""
    return o.two(f, o.fold(r, o.input(SQUARE)), o.fold(s, o.input(SQUARE)))


def _fold_of_result(axes: tuple[int, ...], o: Operands, r: Op, g: Op) -> UOp:
    """The fold of g(x, c)."""
    return o.fold(r, o.home(o.two(g, o.input(SQUARE), None)), axes)


def _fold_of_fold(o: Operands, r: Op, s: Op) -> UOp:
    """Along one axis, then along the other."""
    return o.fold(r, o.fold(s, o.input(SQUARE)), (1,))


FORMS: tuple[tuple[Callable[..., UOp], str], ...] = (
    *((_on_itself, "f"), (_before, "fg")),
    *((partial(_behind, slot), "fg") for slot in (X, Y)),
    *((_two_constants, "fg"), (_constant_before, "fg"), (_constant_inside, "fg"), (_squared, "fg")),
    *((_twice, "uu"), (_of_result, "ug"), (_of_square, "ug"), (_of_compared, "uc")),
    *((_on_both, "fu"), (_on_one, "fu"), (_with_constant, "fu"), (_of_constant, "u")),
    *((partial(_number_or_constant, *row), "") for row in product((0, 1), (True, False))),
    *((partial(_two_numbers, *places), "") for places in permutations(range(TOLD), 2)),
    *((_value_or_constant, ""), (_same_branches, "c"), (_chosen_result, "g")),
    *((_compared_choice, "c"), (_behind_choice, "f"), (_choices_together, "f")),
    *((_chosen_twice, ""), (_beside_view, "f"), (_view_of_result, "g"), (_crossed, "f")),
    *(
        (partial(_fold_of_copies, slot, axes), "r")
        for slot, axes in product((ONCE, ROW, COLUMN), ((0,), (0, 1)))
    ),
    *((partial(_fold_of_result, axes), "rg") for axes in ((0,), (0, 1))),
    *((partial(_number_or_result, *row), "g") for row in product((0, 1), (True, False))),
    *((_same_constant, "fg"), (_undone, "n"), (_there_and_back, "g"), (_compared_twice, "c")),
    *((_copies_of_copies, ""), (_fold_of_fold, "rr"), (_two_folds, "grr")),
)
"""Each with a letter for each op: f has two operands, and so has g, which compares nothing; c
compares, u has one operand, r folds, n is arithmetic of floats."""
