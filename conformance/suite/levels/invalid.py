"""Generate level invalid: programs that break one constraint: written, derived and random."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from uop.conformance.suite.case import ANY_LABEL, CaseId, InvalidCase, NoSuchCaseError
from uop.conformance.suite.choices import Choices, CountedChoices
from uop.conformance.suite.levels.group import Numbered
from uop.conformance.suite.levels.op.elementwise import operand_dtypes
from uop.spec import args
from uop.spec.dtype import VALUES, DType, dtypes
from uop.spec.errors import InvalidError, UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, Constraint, OpDef, Shape
from uop.spec.text.program import Unbuilt, print_unbuilt
from uop.spec.text.uop_file import parse_file
from uop.spec.uop import UOp, const, dims, param

NO_DTYPE = "void"
"""The dtype in the ids of this level: an invalid node has no dtype."""

TRIES = 400
"""The draws for one case: most nodes are valid, or break two constraints."""

STRUCTURAL = (".arity", ".arg")
NOT_DRAWN = ("call", "codegen")
"""The sections whose operands are programs: their cases are written by hand."""

COMMON = (dtypes.float32, dtypes.int32)
"""The dtypes of a valid node, where its op takes one of them."""

SHAPES: tuple[Shape, ...] = ((2, 3), (3,), (), (4, 2), (2, 3, 4), (0,), (1, 3))


@dataclass(frozen=True, slots=True)
class InvalidGroup(Numbered):
    """Programs about one op that must be rejected: written or derived, or random."""

    def case(self, index: int, seed: int) -> InvalidCase:
        id, label = self.id(index), f"{self.op}.{self.name}"
        if self.name == ANY_LABEL:
            return _of_any_label(id, seed)
        return InvalidCase(id, label, programs()[label][index])


def groups() -> Iterator[InvalidGroup]:
    """Yield one group per label, then one per op of random programs."""
    for label, texts in programs().items():
        op, _, constraint = label.partition(".")
        counts = (len(texts), len(texts), len(texts))
        yield InvalidGroup("invalid", op, NO_DTYPE, constraint, counts)
    for declaration in DECLARATIONS.values():
        if _can_break(declaration):
            yield InvalidGroup("invalid", declaration.op.name, NO_DTYPE, ANY_LABEL, (0, 3, 20))


@cache
def programs() -> dict[str, list[str]]:
    """Return the programs that break a constraint, by its label: those of cases/invalid.

    The constraints that ops share need no file: a node that breaks one follows from the
    declaration.
    """
    by_label: dict[str, list[str]] = {}
    folder = files("uop.conformance.suite") / "cases" / "invalid"
    for file in sorted(folder.iterdir(), key=lambda f: f.name):
        for case in parse_file(file.read_text("utf-8"), file.name).cases:
            if case.invalid is not None:
                by_label.setdefault(case.invalid, []).append(case.text)
    for declaration in DECLARATIONS.values():
        for label, node in derived(declaration).items():
            by_label.setdefault(label, [print_unbuilt(node)])
    return by_label


def derived(declaration: OpDef) -> dict[str, Unbuilt]:
    """Return, by label, the first change to a valid node that breaks only this constraint.

    It is empty where the declaration needs more than values: a case by hand has a valid node.
    """
    if not declaration.takes_values:
        return {}
    dtype = next((d for d in COMMON if d in declaration.dtypes), declaration.dtypes[0])
    nodes: dict[str, Unbuilt] = {}
    for node in _changed(declaration.op, operand_dtypes(declaration, dtype)):
        broken = only_broken(node)
        if broken is not None:
            nodes.setdefault(broken.label, node)
    return nodes


def _changed(op: Op, valid: tuple[DType, ...]) -> Iterator[Unbuilt]:
    """Change the number of operands, arg, dtypes, shape or devices of a valid node."""
    src = [param(k, (3,), dtype) for k, dtype in enumerate(valid)]
    yield Unbuilt(op, tuple(src[:-1] or src * 2))
    yield Unbuilt(op, tuple(src), args.Arg())
    void = UOp(Op.SINK)
    for others in ([param(k, (3,), d) for k in range(len(src))] for d in VALUES):
        yield Unbuilt(op, tuple(others))
        yield from (Unbuilt(op, (*src[:k], others[k], *src[k + 1 :])) for k in range(len(src)))
    yield Unbuilt(op, (void,) * len(src))
    yield Unbuilt(op, (*src[:-1], param(len(src) - 1, (2, 2), valid[-1])))
    yield Unbuilt(op, tuple(param(k, (3,), d, f"D{k}") for k, d in enumerate(valid)))
    shards = [param(k, (2, 2), d, ("A", "B")) for k, d in enumerate(valid)]
    turned = UOp(Op.PERMUTE, shards[-1], arg=args.PermuteArg((1, 0)))
    yield Unbuilt(op, (*shards[:-1], turned))


def _can_break(declaration: OpDef) -> bool:
    """Return whether a random node can break more than the number of its operands."""
    has_rules = any(not c.label.endswith(STRUCTURAL) for c in declaration.constraints)
    return has_rules and len(declaration.src) > 0 and declaration.section not in NOT_DRAWN


def _of_any_label(id: CaseId, seed: int) -> InvalidCase:
    choices = CountedChoices(seed, str(id))
    declaration = DECLARATIONS[Op[id.op]]
    for _ in range(TRIES):
        node = draw_node(choices, declaration)
        broken = only_broken(node)
        if broken is not None:
            return InvalidCase(id, broken.label, print_unbuilt(node))
    raise NoSuchCaseError(f"{id}: no node that breaks exactly one constraint in {TRIES} draws")


def only_broken(node: Unbuilt) -> Constraint | None:
    """Return the constraint that the node breaks, if there is exactly one."""
    single = None
    for constraint in DECLARATIONS[node.op].constraints:
        if not _is_broken(constraint, node):
            continue
        if single is not None:
            return None
        if constraint.label.endswith(STRUCTURAL):
            return constraint
        single = constraint
    return single


def _is_broken(constraint: Constraint, node: Unbuilt) -> bool:
    """Return whether a constraint is broken: False if another broken one hides the answer."""
    try:
        return constraint.broken(node) is not None  # type: ignore[arg-type]
    except (ValueError, IndexError, ArithmeticError, UnsupportedError):
        return False


def draw_node(choices: Choices, declaration: OpDef) -> Unbuilt:
    """Sample a well-formed node, whose operands and arg ignore its rules."""
    common = choices.pick(VALUES)
    count = declaration.least
    if declaration.most is None or declaration.most > count:
        count += choices.below(2)
    if choices.chance(10):
        count += 1 if choices.chance(50) else -min(count, 1)
    names = [*declaration.src, *("?" * count)]
    operands = [draw_operand(choices, names[k], common) for k in range(count)]
    arg = None if declaration.arg is None else draw_arg(choices, declaration.arg)
    arg = declaration.default_arg if arg is None else arg
    return Unbuilt(declaration.op, tuple(operands), arg)


def draw_operand(choices: Choices, name: str, common: DType) -> UOp:
    """Sample an operand by its name: a shape, a bound, or most of the time a value."""
    if name in ("s", "s'", "o"):
        if choices.chance(85):
            return dims(choices.between(0, 4) for _ in range(choices.below(4)))
        return param(9, choices.pick(SHAPES), common)
    if name in ("bound", "range") or name[0] == "r":
        bound = const(choices.between(-2, 5), dtypes.index)
        if choices.chance(30):
            bound = param(9, (), common)
        try:
            return UOp(Op.RANGE, bound, arg=args.RangeArg(0)) if name != "bound" else bound
        except InvalidError:
            return bound
    value = param(choices.below(4), choices.pick(SHAPES[: 2 + choices.below(6)]), common)
    if choices.chance(25):
        value = param(4, value.shape, choices.pick(VALUES))
    if choices.chance(5):
        value = UOp(Op.SINK)
    return value


def draw_arg(choices: Choices, kind: type[args.Arg]) -> args.Arg | None:
    """Sample an arg of a type, with fields that fit a rank of up to three; rarely none."""
    if choices.chance(5):
        return None
    rank = choices.below(4)
    axes = tuple(choices.between(0, 3) for _ in range(rank))
    made: dict[type[args.Arg], args.Arg] = {
        args.PermuteArg: args.PermuteArg(axes),
        args.FlipArg: args.FlipArg(tuple(a > 1 for a in axes)),
        args.PadArg: args.PadArg(),
        args.DTypeArg: args.DTypeArg(choices.pick((*VALUES, dtypes.void))),
        args.ReduceArg: args.ReduceArg(choices.pick((Op.ADD, Op.MAX, Op.SUB)), axes),
        args.GetTupleArg: args.GetTupleArg(rank),
        args.RangeArg: args.RangeArg(rank),
        args.ConstArg: args.ConstArg(rank, dtypes.int8),
    }
    return made.get(kind)
