"""How a program reaches a backend: as it is, or lowered by our compiler to a form that it takes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import numpy as np

from uop.compiler.pipeline import lower
from uop.conformance.judging.listed_words import in_listed_words
from uop.conformance.protocol.types import Hello, Outcome, Outputs, Program
from uop.conformance.suite.case import Batch, Case, CaseId, InvalidCase
from uop.conformance.suite.vocabulary import computed, lacking
from uop.interpreter.numeric.storage import Array
from uop.spec.dtype import DTYPES, dtypes
from uop.spec.errors import UopError
from uop.spec.graph import ProgramKind, kind_of, slot_of, slots_of, written
from uop.spec.ops.names import Op
from uop.spec.text.program import print_program
from uop.spec.uop import UOp
from uop.spec.walk import kept_with_root

STAGES = (("kernel", "rangeify"), ("kernel", "select"), ("linear", "linearize"))
"""The forms, each with a stage that leaves it: loops, work items, instructions."""
UNSUPPORTED = " does not support "
"""Stands between a backend and the ops and dtypes that it lacks."""
text_of = kept_with_root(print_program)
"""The text of a program, printed once."""
T = TypeVar("T")
WORDS = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True, eq=False)
class Submission:
    """The programs of a case on their way; `reason` says why they are not sent.

    It is one program, or one for each member of a TUPLE, STACK or SINK that is only packaging.
    Where it was lowered, `root` and `batches` are what it became, and `kept` has the positions of
    the outputs of the case among those of `root`.
    """

    programs: tuple[Program, ...]
    reason: str = ""
    root: UOp | None = None
    batches: tuple[Batch, ...] = ()
    kept: tuple[int, ...] = ()
    is_stack: bool = False
    """Whether the outputs of the programs are the members of one output of the case."""

    @property
    def program(self) -> Program:
        """The first program."""
        return self.programs[0]

    def outcome(self, given: Sequence[Outcome]) -> Outcome:
        """The outputs of the case, from what each of its programs gave."""
        found: list[Outputs] = []
        for one in given:
            if not isinstance(one, Outputs):
                return one
            found.append(one)
        if len(found) == 1 and not self.is_stack:
            return Outputs(self.of_case(found[0].batches))
        return Outputs(tuple(map(self._joined, zip(*(f.batches for f in found), strict=False))))

    def _joined(self, parts: Sequence[tuple[Array, ...]]) -> tuple[Array, ...]:
        outputs = tuple(chain.from_iterable(parts))
        # Members that do not go together are left as they are: the comparison will say so.
        is_one = len({(a.dtype, a.shape) for a in outputs}) == 1
        return (np.stack(outputs),) if self.is_stack and is_one else outputs

    def of_case(self, batches: Sequence[tuple[T, ...]]) -> tuple[tuple[T, ...], ...]:
        """Keep the outputs that the case asks for."""
        if self.root is None:
            return tuple(batches)
        count = len(written(self.root))
        # A wrong number of outputs is left as it is: the comparison will say so.
        return tuple(tuple(b[k] for k in self.kept) if len(b) == count else b for b in batches)


def submission_of(case: Case | InvalidCase, hello: Hello) -> Submission:
    """The program of a case as a backend takes it."""
    if isinstance(case, InvalidCase):
        return Submission((Program(case.text),), _not_checked(case, hello))
    kind = kind_of(case.root)
    if kind in hello.forms:
        unpacked = _unpacked(case, hello) if kind is ProgramKind.TENSOR else None
        return unpacked or _as_it_is(case, hello)
    reason = f"{hello.name} takes no {kind} programs"
    for form, stage in STAGES:
        if form not in hello.forms:
            continue
        try:
            lowered = lower(case.root, stage)
        except UopError as error:
            reason = f"it cannot be lowered to {form} form: {error}"
            continue
        reason = unsupported(lowered, hello)
        if not reason:
            return _in_place_of(case, lowered)
    return Submission((Program(""),), reason)


def _as_it_is(case: Case, hello: Hello) -> Submission:
    return Submission((_program(case.root, case.batches),), unsupported(case.root, hello))


def _unpacked(case: Case, hello: Hello) -> Submission | None:
    """A program that holds ops only as packaging, without those that are not listed.

    None where nothing is packaging, or it would not help.
    """
    if not unsupported(case.root, hello):
        return None
    members: tuple[UOp, ...] = (case.root,)
    is_stack = False
    if case.root.op.name not in hello.ops and case.op != case.root.op.name:
        members = _members(case.root)
        is_stack = case.root.op is Op.STACK
    said = [in_listed_words(member, case.batches, hello) for member in members]
    if any(unsupported(root, hello) for root, _ in said):
        return None
    return Submission(tuple(_program(*one) for one in said), is_stack=is_stack)


def _members(root: UOp) -> tuple[UOp, ...]:
    """The values that a root packs: of a SINK those of whole buffers that it alone writes."""
    if root.op in (Op.TUPLE, Op.STACK):
        return root.src
    is_plain = root.op is Op.SINK and all(
        s.op is Op.STORE and len(s.src) == 2 and s.src[0].op is Op.BUFFER for s in root.src
    )
    if not is_plain:
        return (root,)
    stored = {slot_of(s.src[0]): s.src[1] for s in root.src}
    return tuple(stored[slot] for slot in sorted(stored))


def not_listed(id: CaseId, hello: Hello) -> str:
    """Why a backend is not sent the case of this id, as far as the id says; the case is not made.

    What is lowered needs no op of that name.
    """
    if id.dtype in DTYPES.keys() - hello.dtypes - {dtypes.void.name}:
        return f"{hello.name}{UNSUPPORTED}{id.dtype}"
    by_name = "tensor" in hello.forms or id.level == "invalid"
    if by_name and id.op in Op.__members__ and id.op not in hello.ops:
        return f"{hello.name}{UNSUPPORTED}{id.op}"
    return ""


def unsupported(root: UOp, hello: Hello) -> str:
    """Why a backend cannot run a program, or nothing.

    Shapes and index constants are written in place: they need not be supported.
    """
    nodes = computed(root)
    names = sorted({name for u in nodes for name in lacking(u, hello.ops, hello.dtypes)})
    if names:
        return f"{hello.name}{UNSUPPORTED}{', '.join(names)}"
    largest = max((math.prod(u.shape) for u in nodes), default=0)
    if hello.limits.elements is not None and largest > hello.limits.elements:
        return f"{hello.name} takes at most {hello.limits.elements} elements"
    devices = {name for u in nodes for name in _devices(u)}
    if hello.limits.devices is not None and len(devices) > hello.limits.devices:
        return f"{hello.name} takes at most {hello.limits.devices} devices"
    return ""


def _program(root: UOp, batches: Sequence[Batch]) -> Program:
    return Program(text_of(root), tuple(batch.inputs for batch in batches))


def _in_place_of(case: Case, lowered: UOp) -> Submission:
    slots = slots_of(lowered)
    batches = tuple(
        Batch({slot: a for slot, a in batch.inputs.items() if slot in slots})
        for batch in case.batches
    )
    left = sorted(slot_of(u) for u in written(lowered))
    kept = list(range(len(left)))
    if not kind_of(case.root).calls_kernels:
        # STOREs in the order of the outputs, or by slot where the case has STOREs of its own.
        stored = [slot_of(store.src[0]) for store in lower(case.root, "callify").src]
        ordered = sorted(stored) if case.root.op is Op.SINK else stored
        kept = [left.index(slot) for slot in ordered]
    return Submission((_program(lowered, batches),), "", lowered, batches, tuple(kept))


def _not_checked(case: InvalidCase, hello: Hello) -> str:
    """Why a program that must be rejected is not sent, or nothing."""
    if "check" not in hello.offers:
        return f"{hello.name} does not check programs"
    named = set(WORDS.findall(case.text))
    lacking = sorted((named & Op.__members__.keys()) - hello.ops)
    lacking += sorted((named & DTYPES.keys()) - hello.dtypes - {dtypes.void.name, "index"})
    return f"{hello.name}{UNSUPPORTED}{', '.join(lacking)}" if lacking else ""


def _devices(u: UOp) -> tuple[str, ...]:
    if u.device is None:
        return ()
    return u.device if isinstance(u.device, tuple) else (u.device,)
