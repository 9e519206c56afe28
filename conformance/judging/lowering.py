"""Builds the programs that a backend gets for a case: the case itself or a lowered form."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeVar, cast

import numpy as np

from uop.compiler.pipeline import lower
from uop.compiler.steps import result_slots
from uop.conformance.protocol.types import Hello, Outcome, Outputs, Problem, Program
from uop.conformance.suite.case import LEVELS, Batch, Case, CaseId, InvalidCase
from uop.conformance.suite.vocabulary import Skips, computed, lacking, most_elements
from uop.interpreter.numeric.storage import Array, constant, np_dtype
from uop.spec import graph
from uop.spec.args import ConstArg
from uop.spec.dtype import DTYPES, DType, dtypes
from uop.spec.errors import RefusedError, UopError
from uop.spec.graph import kept_with_root
from uop.spec.ops.names import Op
from uop.spec.registry import Shape
from uop.spec.text.program import print_program
from uop.spec.uop import UOp, const, param


def substitute_unlisted(
    root: UOp, batches: Sequence[Batch], hello: Hello
) -> tuple[UOp, tuple[Batch, ...]]:
    """Rewrite a program to an equal one, and return it with its inputs.

    A CONST becomes an input if CONST is not listed. A bool CONST or input becomes a comparison
    of two numbers if bool is not listed. Bodies of FUNCTIONs do not change.
    """
    rewrite = _Substitution(hello, [dict(batch.inputs) for batch in batches], graph.slots_of(root))
    new = {u: other for u in graph.outside(root) if (other := rewrite.replacement(u)) is not None}
    rewritten = graph.replaced(root, new) if new else root
    used = graph.slots_of(rewritten).keys()
    return rewritten, tuple(
        Batch({slot: a for slot, a in inputs.items() if slot in used}) for inputs in rewrite.batches
    )


class _Substitution:
    """Replaces single nodes, and adds the inputs of the replacements to each batch."""

    def __init__(
        self, hello: Hello, batches: list[dict[int, Array]], slots: Collection[int]
    ) -> None:
        self.batches = batches
        self.next_slot = 1 + max(chain(slots, *batches), default=-1)
        self.hello = hello
        self.has_bools = dtypes.bool.name in hello.dtypes
        listed = [DTYPES[name] for name in sorted(hello.dtypes & DTYPES.keys())]
        numbers = [d for d in listed if d.is_int or d.is_float]
        # Comparisons that can replace a bool, in order of preference.
        compares = (Op.CMPLT, Op.CMPNE, Op.CMPGT)
        pairs = ((op, d) for op in compares for d in numbers if hello.takes(op.name, d.name))
        self.comparison = next(pairs, None)

    def _has_constant(self, dtype: DType) -> bool:
        return self.hello.takes(Op.CONST.name, dtype.name)

    def replacement(self, u: UOp) -> UOp | None:
        """The replacement of a node; None if it does not change."""
        is_input = u.op is Op.PARAM and u.addrspace is None and u.device is None
        if u.op is not Op.CONST and not is_input:
            return None
        if u.dtype is dtypes.bool and not self.has_bools:
            return self._comparison(u)
        if u.op is Op.CONST and u.dtype is not dtypes.index and not self._has_constant(u.dtype):
            return self._input((), u.dtype, [_value(u)] * len(self.batches))
        return None

    def _comparison(self, u: UOp) -> UOp | None:
        """A comparison of a number with zero that equals the bool; None if none is listed."""
        if self.comparison is None:
            return None
        compare, of = self.comparison
        if u.op is Op.CONST and self._has_constant(of):
            number, zero = const(int(_value(u)), of), const(0, of)
        else:
            is_constant, kind = u.op is Op.CONST, np_dtype(of)
            data = [
                _value(u) if is_constant else inputs[graph.slot_of(u)] for inputs in self.batches
            ]
            number = self._input(u.shape, of, [a.astype(kind) for a in data])
            zero = self._input((), of, [np.zeros((), kind) for _ in data])
        operands = (zero, number) if compare is Op.CMPLT else (number, zero)
        return UOp(compare, *operands)

    def _input(self, shape: Shape, dtype: DType, data: Sequence[Array]) -> UOp:
        slot = self.next_slot
        self.next_slot += 1
        for inputs, array in zip(self.batches, data, strict=True):
            inputs[slot] = array
        return param(slot, shape, dtype)


def _value(u: UOp) -> Array:
    return constant(cast(ConstArg, u.arg).bits, u.dtype)


STAGES = (("kernel", "rangeify"), ("kernel", "select"), ("linear", "linearize"))
"""The forms with the stages that produce them: loops, work items, instructions."""
UNSUPPORTED = " does not support "
"""Separates the backend from the ops and dtypes that it lacks, in a skip reason."""
LEAVES_OUT = " leaves out "
"""Separates the run from the ops and dtypes that it skips, in a skip reason."""
text_of = kept_with_root(print_program)
"""The text of a program, cached."""
OPTIMIZED = 8
"""Of so many cases one is not quick."""
T = TypeVar("T")
WORDS = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True, eq=False)
class Submission:
    """The programs that a backend gets for a case; `reason` says why they are not sent.

    `is_ours` says that this project cannot make them, whatever the backend lists.

    There is one program, or one per member of a TUPLE, STACK or SINK that the backend lacks.
    A lowered program has the graph `root` and the inputs `batches`; `positions` maps the outputs of
    the case to positions in the outputs of `root`.
    """

    programs: tuple[Program, ...]
    reason: str = ""
    root: UOp | None = None
    batches: tuple[Batch, ...] = ()
    positions: tuple[int, ...] = ()
    is_ours: bool = False
    is_stack: bool = False
    """Whether the program outputs are stacked to one output of the case."""

    @property
    def program(self) -> Program:
        """The first program."""
        return self.programs[0]

    def outcome(self, outcomes: Sequence[Outcome]) -> Outcome:
        """Combine the outcomes of the programs: the first problem, else the outputs of the case."""
        batches = []
        for outcome in outcomes:
            if isinstance(outcome, Problem):
                return outcome
            batches.append(outcome.batches)
        if len(batches) == 1 and not self.is_stack:
            return Outputs(self.of_case(batches[0]))
        return Outputs(tuple(map(self._joined, zip(*batches, strict=False))))

    def _joined(self, parts: Sequence[tuple[Array, ...]]) -> tuple[Array, ...]:
        outputs = tuple(chain.from_iterable(parts))
        # The comparison reports members that differ in dtype or shape.
        is_one = len({(a.dtype, a.shape) for a in outputs}) == 1
        return (np.stack(outputs),) if self.is_stack and is_one else outputs

    def of_case(self, batches: Sequence[tuple[T, ...]]) -> tuple[tuple[T, ...], ...]:
        """Keep the outputs that the case asks for."""
        if self.root is None:
            return tuple(batches)
        count = len(graph.written(self.root))
        # The comparison reports a wrong number of outputs.
        return tuple(tuple(b[k] for k in self.positions) if len(b) == count else b for b in batches)


def submission_of(case: Case | InvalidCase, hello: Hello) -> Submission:
    """Build the programs that a backend gets for a case."""
    submission = _submission_of(case, hello)
    # A search for a cause has programs of its own, which are to fail as users see it.
    if case.id.level not in LEVELS or case.id.part(OPTIMIZED) == 0:
        return submission
    quick = tuple(replace(program, quick=True) for program in submission.programs)
    return replace(submission, programs=quick)


def _submission_of(case: Case | InvalidCase, hello: Hello) -> Submission:
    if isinstance(case, InvalidCase):
        return Submission((Program(case.text),), _not_checked(case, hello))
    kind = graph.kind_of(case.root)
    if kind in hello.forms:
        unpacked = _unpacked(case, hello) if kind is graph.ProgramKind.TENSOR else None
        whole = Submission((_program(case.root, case.batches),), unsupported(case.root, hello))
        return unpacked or whole
    reason, is_ours = f"{hello.name} takes no {kind} programs", False
    # Nothing makes a kernel as a graph of a list of instructions; CALLed kernels become lists.
    is_mixed = kind is graph.ProgramKind.MIXED
    for form, stage in STAGES if kind is not graph.ProgramKind.LINEAR else ():
        if form not in hello.forms or (is_mixed and form == "kernel"):
            continue
        try:
            lowered = lower(case.root, stage)
        except UopError as error:
            reason = f"it cannot be lowered to {form} form: {error}"
            is_ours = not isinstance(error, RefusedError)
            continue
        reason, is_ours = unsupported(lowered, hello), False
        if not reason:
            return _in_place_of(case, lowered)
    return Submission((Program(""),), reason, is_ours=is_ours)


def _unpacked(case: Case, hello: Hello) -> Submission | None:
    """Split the case into its members and substitute ops that are not listed.

    None if the backend supports the whole case, or not even the members.
    """
    if not unsupported(case.root, hello):
        return None
    members: tuple[UOp, ...] = (case.root,)
    is_stack = False
    packs = case.op != case.root.op.name
    if packs and any(True for _ in needed(case.root, hello)):
        members = _members(case.root)
        is_stack = case.root.op is Op.STACK
    rewritten = [substitute_unlisted(member, case.batches, hello) for member in members]
    if any(unsupported(root, hello) for root, _ in rewritten):
        return None
    return Submission(tuple(_program(*one) for one in rewritten), is_stack=is_stack)


def _members(root: UOp) -> tuple[UOp, ...]:
    """The members of a TUPLE or STACK; the values that a SINK stores to whole buffers."""
    if root.op in (Op.TUPLE, Op.STACK):
        return root.src
    is_plain = root.op is Op.SINK and all(
        s.op is Op.STORE and len(s.src) == 2 and s.src[0].op is Op.BUFFER for s in root.src
    )
    if not is_plain:
        return (root,)
    stored = {graph.slot_of(s.src[0]): s.src[1] for s in root.src}
    return tuple(stored[slot] for slot in sorted(stored))


def left_out(case: Case | InvalidCase, submission: Submission, skips: Skips) -> str:
    """Why a run does not send a case: it skips an op or dtype of it; empty if it skips none."""
    if not skips:
        return ""
    if isinstance(case, InvalidCase):
        names = set(WORDS.findall(case.text)) & (skips.ops | skips.dtypes)
    else:
        nodes = chain(computed(case.root), computed(submission.root) if submission.root else ())
        names = {name for u in nodes for name in skips.names_in(u)}
    return f"the run{LEAVES_OUT}{', '.join(sorted(names))}" if names else ""


def not_listed(id: CaseId, hello: Hello) -> str:
    """Why the backend does not support the case of this id; empty if the id alone does not show it.

    The case need not be generated. Lowering may remove the op of a case.
    """
    if id.dtype in DTYPES.keys() - hello.dtypes - {dtypes.void.name}:
        return f"{hello.name}{UNSUPPORTED}{id.dtype}"
    by_name = "tensor" in hello.forms or id.level == "invalid"
    if by_name and id.op in Op.__members__ and id.op not in hello.ops:
        return f"{hello.name}{UNSUPPORTED}{id.op}"
    if by_name and id.op in hello.supports and id.dtype in hello.dtypes - hello.supports[id.op]:
        return f"{hello.name}{UNSUPPORTED}{id.op} {id.dtype}"
    return ""


def unsupported(root: UOp, hello: Hello) -> str:
    """Why a backend does not support a program; empty if it does.

    Nodes of shapes and index constants do not count: they need not be listed.
    """
    nodes = computed(root)
    names = sorted({name for u in nodes for name in needed(u, hello)})
    if names:
        return f"{hello.name}{UNSUPPORTED}{', '.join(names)}"
    largest = max(map(most_elements, nodes), default=0)
    if hello.limits.elements is not None and largest > hello.limits.elements:
        return f"{hello.name} takes at most {hello.limits.elements} elements"
    devices = {name for u in nodes for name in _devices(u)}
    if hello.limits.devices is not None and len(devices) > hello.limits.devices:
        return f"{hello.name} takes at most {hello.limits.devices} devices"
    return ""


def needed(u: UOp, hello: Hello) -> Iterator[str]:
    """Yield what a node needs and the backend does not list."""
    return lacking(u, hello.ops, hello.dtypes, hello.supports)


def _program(root: UOp, batches: Sequence[Batch]) -> Program:
    return Program(text_of(root), tuple(batch.inputs for batch in batches))


def _in_place_of(case: Case, lowered: UOp) -> Submission:
    slots = graph.slots_of(lowered)
    batches = tuple(
        Batch({slot: a for slot, a in batch.inputs.items() if slot in slots})
        for batch in case.batches
    )
    slots_written = sorted(graph.slot_of(u) for u in graph.written(lowered))
    first = lowered if graph.returns_memory(case.root) else lower(case.root, "callify")
    positions = tuple(slots_written.index(slot) for slot in result_slots(case.root, first))
    return Submission((_program(lowered, batches),), "", lowered, batches, positions)


def _not_checked(case: InvalidCase, hello: Hello) -> str:
    """Why an invalid program is not sent; empty if it is sent."""
    if "check" not in hello.offers:
        return f"{hello.name} does not check programs"
    named = set(WORDS.findall(case.text))
    lacking = sorted((named & Op.__members__.keys()) - hello.ops)
    kinds = (named & DTYPES.keys()) - {dtypes.void.name, "index"}
    lacking += sorted(kinds - hello.dtypes)
    # What cannot be built has no cells: any of its ops may be on any of its dtypes.
    lacking += sorted(
        f"{op} {dtype}"
        for op in named & hello.supports.keys()
        for dtype in (kinds & hello.dtypes) - hello.supports[op]
    )
    return f"{hello.name}{UNSUPPORTED}{', '.join(lacking)}" if lacking else ""


def _devices(u: UOp) -> tuple[str, ...]:
    if u.device is None:
        return ()
    return u.device if isinstance(u.device, tuple) else (u.device,)
