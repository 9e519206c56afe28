"""How a program reaches a backend: as it is, or lowered by our compiler to a form that it takes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from uop.compiler.kernels import written
from uop.compiler.pipeline import lower
from uop.conformance.case import Batch, Case, CaseId, InvalidCase
from uop.conformance.protocol import Hello, Outcome, Outputs, Program
from uop.interpreter.inputs import slots_of
from uop.interpreter.machine import is_kernel_program
from uop.interpreter.memory import slot_of
from uop.spec.args import AllReduceArg, ReduceArg
from uop.spec.dtype import DTYPES, dtypes
from uop.spec.errors import UopError
from uop.spec.ops.names import Op
from uop.spec.text import in_place, print_program
from uop.spec.uop import UOp
from uop.spec.walk import kept_with_root, toposort

STAGES = (("kernel", "rangeify"), ("kernel", "select"), ("linear", "linearize"))
"""The forms, each with a stage that leaves it: loops, work items, instructions."""
UNSUPPORTED = " does not support "
"""Stands between a backend and the ops and dtypes that it lacks."""
text_of = kept_with_root(print_program)
"""The text of a program, printed once."""
T = TypeVar("T")
WORDS = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True, eq=False)
class Delivery:
    """A program on its way; `reason` says why it is not sent.

    Where it was lowered, `root` and `batches` are what it became, and `kept` has the positions of
    the outputs of the case among those of `root`.
    """

    program: Program
    reason: str = ""
    root: UOp | None = None
    batches: tuple[Batch, ...] = ()
    kept: tuple[int, ...] = ()

    def outcome(self, given: Outcome) -> Outcome:
        """The outputs of the case among those that were given."""
        return Outputs(self.of_case(given.batches)) if isinstance(given, Outputs) else given

    def of_case(self, batches: Sequence[tuple[T, ...]]) -> tuple[tuple[T, ...], ...]:
        """Of what there is for each output that was sent for, what is for those of the case."""
        if self.root is None:
            return tuple(batches)
        count = len(written(self.root))
        # A wrong number of outputs is left as it is: the comparison will say so.
        return tuple(tuple(b[k] for k in self.kept) if len(b) == count else b for b in batches)


def deliver(case: Case | InvalidCase, hello: Hello) -> Delivery:
    """The program of a case as a backend takes it."""
    if isinstance(case, InvalidCase):
        return Delivery(Program(case.text), _not_checked(case, hello))
    if form_of(case.root) in hello.forms:
        return Delivery(_program(case.root, case.batches), unsupported(case.root, hello))
    reason = f"{hello.name} takes no {form_of(case.root)} programs"
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
    return Delivery(Program(""), reason)


def not_listed(id: CaseId, hello: Hello) -> str:
    """Why a backend is not sent the case of this id, as far as the id says; the case is not made.

    A twin, which is what an op decomposes into, needs no op of that name, nor does what is lowered.
    """
    if id.dtype in DTYPES.keys() - hello.dtypes - {dtypes.void.name}:
        return f"{hello.name}{UNSUPPORTED}{id.dtype}"
    by_name = id.level == "op" and id.group != "twin" and "tensor" in hello.forms
    if by_name and id.op in Op.__members__ and id.op not in hello.ops:
        return f"{hello.name}{UNSUPPORTED}{id.op}"
    return ""


def form_of(root: UOp) -> str:
    """The form of a program."""
    if not is_kernel_program(root):
        return "tensor"
    bodies = {u.src[0].op for u in root.toposort() if u.op is Op.CALL}
    return "linear" if bodies <= {Op.LINEAR, Op.PROGRAM} else "kernel"


def unsupported(root: UOp, hello: Hello) -> str:
    """Why a backend cannot run a program, or nothing.

    Shapes and index constants are written in place: they need not be supported.
    """
    nodes = computed(root)
    # A REDUCE by MAX needs MAX as well.
    folds = {u.arg.op.name for u in nodes if isinstance(u.arg, ReduceArg | AllReduceArg)}
    ops = sorted(({u.op.name for u in nodes} | folds) - hello.ops)
    kinds = sorted({u.dtype.name for u in nodes} - hello.dtypes - {dtypes.void.name})
    if ops or kinds:
        return f"{hello.name}{UNSUPPORTED}{', '.join([*ops, *kinds])}"
    largest = max((math.prod(u.shape) for u in nodes), default=0)
    if hello.limits.elements is not None and largest > hello.limits.elements:
        return f"{hello.name} takes at most {hello.limits.elements} elements"
    devices = {name for u in nodes for name in _devices(u)}
    if hello.limits.devices is not None and len(devices) > hello.limits.devices:
        return f"{hello.name} takes at most {hello.limits.devices} devices"
    return ""


def computed(root: UOp) -> list[UOp]:
    """The nodes that have a line of their own in the text of a program."""
    return toposort([root], lambda u: [s for s in u.src if in_place(s) is None])


def _program(root: UOp, batches: tuple[Batch, ...]) -> Program:
    return Program(text_of(root), tuple(batch.inputs for batch in batches))


def _in_place_of(case: Case, lowered: UOp) -> Delivery:
    slots = slots_of(lowered)
    batches = tuple(
        Batch({slot: a for slot, a in batch.inputs.items() if slot in slots})
        for batch in case.batches
    )
    left = sorted(slot_of(u) for u in written(lowered))
    kept = list(range(len(left)))
    if not is_kernel_program(case.root):
        # STOREs in the order of the outputs, or by slot where the case has STOREs of its own.
        stored = [slot_of(store.src[0]) for store in lower(case.root, "callify").src]
        ordered = sorted(stored) if case.root.op is Op.SINK else stored
        kept = [left.index(slot) for slot in ordered]
    return Delivery(_program(lowered, batches), "", lowered, batches, tuple(kept))


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
