"""Define the vocabulary of random programs: the ops and dtypes of a version, or of a backend."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from math import prod
from typing import cast

from uop.conformance.protocol.types import Hello
from uop.spec.args import AllReduceArg, ReduceArg
from uop.spec.dtype import DTYPES, DType, dtypes
from uop.spec.graph import toposort
from uop.spec.latitude import Ulp, Unordered
from uop.spec.ops.names import Op
from uop.spec.properties.interval import Interval
from uop.spec.registry import DECLARATIONS, OpDef
from uop.spec.text.printer import in_place
from uop.spec.uop import UOp, param

PINNED = "vocabulary.toml"
"""The file with the vocabulary of this version, so that a new op changes no program."""
KEY_DIGITS = 6
LARGEST = 1 << 16
"""The most elements of a value in a random program."""
SMALL = 0.25
"""A vocabulary with at most this share of the ops and dtypes gets the counts of more effort."""
ALU = frozenset({"elementwise", "decomposed"})
"""The sections of ops that the compiler leaves in kernels as they are."""
EVERYWHERE: Mapping[str, frozenset[str]] = {}


@dataclass(frozen=True, slots=True)
class Skips:
    """The ops and dtypes that a run leaves out."""

    ops: frozenset[str] = frozenset()
    dtypes: frozenset[str] = frozenset()

    def names_in(self, u: UOp) -> Iterator[str]:
        """Yield the names that a node needs and that are left out."""
        return lacking(u, Op.__members__.keys() - self.ops, DTYPES.keys() - self.dtypes)

    def __bool__(self) -> bool:
        return bool(self.ops or self.dtypes)


NO_SKIPS = Skips()


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Names of ops and dtypes, and the most elements of a value.

    `key` is a short hash of them, empty for the whole language.
    """

    key: str
    ops: frozenset[str]
    dtypes: frozenset[str]
    elements: int | None = None
    supports: Mapping[str, frozenset[str]] = field(default_factory=dict, hash=False)
    """The ops that it has on some of the dtypes alone, as in `Hello.supports`."""

    @property
    def is_whole(self) -> bool:
        return not self.key

    @property
    def is_small(self) -> bool:
        """Return whether a run has time for more cases of each op."""
        every = whole()
        pairs = len(self.ops & every.ops) * len(self.dtypes & every.dtypes)
        return pairs <= SMALL * len(every.ops) * len(every.dtypes)

    def has(self, *ops: Op, on: DType | None = None) -> bool:
        """Return whether the vocabulary has all of these ops, on a dtype if one is named."""
        return len(self.of(ops, on)) == len(ops)

    def of(self, ops: Iterable[Op], on: DType | None = None) -> tuple[Op, ...]:
        """Return the ops that the vocabulary has, on a dtype if one is named, in their order."""
        listed = (op for op in ops if op.name in self.ops)
        return tuple(op for op in listed if on is None or self.has_cell(op.name, on.name))

    def on(self, dtype: DType) -> Elementwise:
        """Return the elementwise ops of the vocabulary that take operands of a dtype."""
        return elementwise_in(self, dtype)

    def has_cell(self, op: str, dtype: str) -> bool:
        """Return whether `supports` allows an op on a dtype."""
        return dtype in self.supports.get(op, (dtype,))

    def of_dtypes(self, kinds: Iterable[DType]) -> tuple[DType, ...]:
        """Return the dtypes that the vocabulary has, in their order."""
        return tuple(d for d in kinds if d.name in self.dtypes)

    def speaks(self, root: UOp, known: Collection[UOp] = ()) -> bool:
        """Return whether a program may hold a value and what it is computed of, down to `known`."""
        return self.is_whole or all(map(self.takes, computed(root, known)))

    def takes(self, u: UOp) -> bool:
        """Return whether a program may hold the node."""
        if self.elements is not None and most_elements(u) > self.elements:
            return False
        return next(lacking(u, self.ops, self.dtypes, self.supports), None) is None


@dataclass(frozen=True, slots=True)
class Elementwise:
    """Elementwise ops without arg that take a dtype, by the number of their operands.

    The wide ones have a budget. Comparisons make a bool of other dtypes; those that may return
    either bool for a NaN are left out, and so is WHERE.
    """

    unary: tuple[Op, ...]
    unary_wide: tuple[Op, ...]
    binary: tuple[Op, ...]
    binary_wide: tuple[Op, ...]
    comparisons: tuple[Op, ...]

    @property
    def total(self) -> tuple[Op, ...]:
        """The binary ops that have a value for all operands: no division, no shift."""
        return tuple(op for op in self.binary if not DECLARATIONS[op].is_partial)


@cache
def elementwise_in(vocabulary: Vocabulary, dtype: DType) -> Elementwise:
    """Return the elementwise ops of a vocabulary on a dtype, in the order of their declarations."""
    every = [d for d in DECLARATIONS.values() if d.is_elementwise and d.takes_values]
    every = [d for d in every if dtype in d.dtypes and d.op is not Op.WHERE]
    listed = [d for d in every if vocabulary.has(d.op, on=dtype)]

    def ops(arity: int, keep: Callable[[OpDef], bool]) -> tuple[Op, ...]:
        return tuple(d.op for d in listed if len(d.src) == arity and keep(d))

    def is_ordered(d: OpDef) -> bool:
        return not (dtype.is_float and isinstance(d.latitude, Unordered))

    return Elementwise(
        unary=ops(1, lambda d: not _has_budget(d)),
        unary_wide=ops(1, _has_budget),
        binary=ops(2, lambda d: not _has_budget(d) and not _makes_bool(d)),
        binary_wide=ops(2, _has_budget),
        comparisons=ops(2, lambda d: _makes_bool(d) and is_ordered(d)),
    )


def _has_budget(d: OpDef) -> bool:
    return isinstance(d.latitude, Ulp)


def _makes_bool(d: OpDef) -> bool:
    others = [t for t in d.dtypes if t is not dtypes.bool]
    if not others:
        return False
    return UOp(d.op, *(param(k, (), others[0]) for k in range(len(d.src)))).dtype is dtypes.bool


@cache
def whole() -> Vocabulary:
    """Return the vocabulary of all random programs of this version."""
    text = (files("uop.conformance.suite") / PINNED).read_text("utf-8")
    pinned = tomllib.loads(text)
    return Vocabulary("", frozenset(pinned["ops"]), frozenset(pinned["dtypes"]))


def vocabulary_of(hellos: Sequence[Hello], skips: Skips = NO_SKIPS) -> Vocabulary:
    """Return what all of these backends list, but for `skips`; the whole if that is everything."""
    limits = [h.limits.elements for h in hellos if h.limits.elements is not None]
    few = min(limits, default=LARGEST)
    listed = frozenset.intersection(*(_ops(hello) for hello in hellos)) - skips.ops
    kinds = frozenset.intersection(*(hello.dtypes.intersection(DTYPES) for hello in hellos))
    kinds -= skips.dtypes
    every, elements = whole(), few if few < LARGEST else None
    supports = _supports(hellos, listed, kinds)
    if listed >= every.ops and kinds >= every.dtypes and elements is None and not supports:
        return every
    cells = [f"{op} on {' '.join(sorted(on))}" for op, on in supports.items()]
    names = " ".join([*sorted(listed), *sorted(kinds), str(elements), *cells])
    key = hashlib.sha256(names.encode()).hexdigest()[:KEY_DIGITS]
    return Vocabulary(key, listed, kinds, elements, supports)


def _supports(
    hellos: Sequence[Hello], listed: frozenset[str], kinds: frozenset[str]
) -> dict[str, frozenset[str]]:
    """Return the dtypes of each op that not all of the backends list on all dtypes."""
    ops = sorted(listed & {op for h in hellos for op in h.supports})
    on = {op: kinds.intersection(*(h.supports.get(op, kinds) for h in hellos)) for op in ops}
    return {op: on[op] for op in ops if on[op] < kinds}


def most_elements(u: UOp) -> int:
    """Return the most elements of a value: in the body of a FUNCTION a size may be a variable."""
    return prod(n if isinstance(n, int) else int(cast(Interval, n.min_max).max) for n in u.shape)


def lacking(
    u: UOp,
    ops: Collection[str],
    kinds: Collection[str],
    supports: Mapping[str, Collection[str]] = EVERYWHERE,
) -> Iterator[str]:
    """Yield the ops, dtypes and cells that a node needs and that are not listed.

    What compares two values makes a bool even where bool is not listed; a WHERE takes it.
    """
    if u.op.name not in ops:
        yield u.op.name
    # A REDUCE by MAX needs MAX as well.
    by = folded_by(u)
    if by and by not in ops:
        yield by
    if u.dtype is not dtypes.void and u.dtype.name not in kinds and not _compares(u):
        yield u.dtype.name
    if dtypes.bool.name not in kinds and u.op not in (Op.TUPLE, Op.SINK):
        taken = u.src[1:] if u.op is Op.WHERE else u.src
        if any(s.dtype is dtypes.bool for s in taken):
            yield dtypes.bool.name
    for op, dtype in cells_of(u) if supports else ():
        if op in ops and dtype in kinds and dtype not in supports.get(op, kinds):
            yield f"{op} {dtype}"


def cells_of(u: UOp) -> Iterator[tuple[str, str]]:
    """Yield the cells of a node: its op, and that by which it folds, on its dtype.

    The dtype of a cell is that of the first operand, of a WHERE that of the first branch. It is the
    dtype of the node where it has no operand, or one that has no dtype or spells a shape. Where
    the node has no dtype either, there is no cell.
    """
    operands = u.src[1:] if u.op is Op.WHERE else u.src
    first = operands[0] if operands and in_place(operands[0]) is None else u
    dtype = u.dtype if first.dtype is dtypes.void else first.dtype
    if dtype is not dtypes.void:
        yield u.op.name, dtype.name
        if by := folded_by(u):
            yield by, dtype.name


def folded_by(u: UOp) -> str:
    """The op by which a node folds; empty for a node that does not."""
    return u.arg.op.name if isinstance(u.arg, ReduceArg | AllReduceArg) else ""


def computed(root: UOp, known: Collection[UOp] = ()) -> list[UOp]:
    """Return the nodes with a line of their own in the text of a program, none below `known`.

    Shapes and index constants are written in place: they need not be listed.
    """

    def operands(u: UOp) -> list[UOp]:
        return [] if u in known else [s for s in u.src if in_place(s) is None]

    return toposort([root], operands)


def _compares(u: UOp) -> bool:
    """Return whether a node is a bool that its op alone makes of other dtypes."""
    made = u.dtype is dtypes.bool and u.declaration.is_elementwise and u.arg is None
    return made and u.src[0].dtype is not dtypes.bool


def _ops(hello: Hello) -> frozenset[str]:
    """Return the ops that graphs for a backend may have: the compiler takes some of them away."""
    listed = hello.ops.intersection(Op.__members__)
    if "tensor" in hello.forms:
        return listed
    return listed | {op.name for op, d in DECLARATIONS.items() if d.section not in ALU}
