"""Runs tinygrad as a backend: `tinygrad:PYTHON`, `:CL`, `:CPU` or `:X86`, in a child process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from uop.conformance.backends.attempt import ERRORS, raised
from uop.conformance.backends.interpreter import EVERY_DTYPE, is_sharded
from uop.conformance.backends.tinygrad_graph import COMPOSED, Graph
from uop.conformance.backends.tinygrad_kernel import kernel, used_slots, written_slots
from uop.conformance.backends.tinygrad_library import NAME, TARGETS, TESTED, Language, Node, opened
from uop.conformance.backends.versions import version_of
from uop.conformance.protocol import wire
from uop.conformance.protocol.types import (
    Hello,
    Limits,
    Outcome,
    Outputs,
    Problem,
    ProblemKind,
    Program,
)
from uop.conformance.workers.children import Child, EndedError
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.dtype import DTYPES, dtypes
from uop.spec.errors import UnsupportedError, UopError
from uop.spec.graph import base_of, kind_of, outside, slot_of
from uop.spec.ops.names import Op
from uop.spec.text.program import parse
from uop.spec.uop import UOp

PROFILE = "pad_fill=zero fp8_saturate=true"
"""Its PAD has no other fill; its fp8 saturates as NVIDIA's headers do by default."""
ENDED_BY_ZERO = " int_div_traps=true"
"""Its device CPU divides by the instruction of the processor, which traps."""

PROGRAMS = 16


@dataclass(frozen=True, slots=True)
class Probe:
    """Ask the child for the capabilities of the device."""


@dataclass(frozen=True, slots=True)
class Probed:
    """The name of the renderer, and the supported dtypes: not every clang has bfloat16."""

    renderer: str
    dtypes: frozenset[str]


class TinygradBackend:
    """Schedules and compiles each program once, then runs it on each batch.

    A child of this process opens the device, so that a crash costs only its program.
    """

    def __init__(self, device: str = "PYTHON") -> None:
        self.target = device.upper()

    def hello(self) -> Hello:
        if self.target not in TARGETS:
            targets = ", ".join(TARGETS)
            raise UnsupportedError(f"tinygrad on {self.target!r}: expected one of {targets}")
        self.language = opened(self.target)
        self.child = Child(self._answer, Probe, wire.Run)
        try:
            probed = self.child.ask(Probe(), Probed)
        except (EndedError, wire.RefusedError) as error:
            raise UnsupportedError(f"tinygrad on {self.target}: {error}") from None
        return Hello(
            NAME,
            version_of(NAME),
            f"{self.target} ({probed.renderer})",
            frozenset(op.name for op in Op),
            probed.dtypes,
            Limits(PROGRAMS, devices=1),
            forms=frozenset({"tensor", "kernel"}),
            profile=PROFILE + ENDED_BY_ZERO * (self.language.device == "CPU"),
            variant=self.target,
            composed=COMPOSED,
            tested=TESTED,
        )

    def _capabilities(self) -> Probed | wire.Refused:
        try:
            renderer = type(self.language.renderer).__name__
        except ERRORS as error:
            return wire.Refused(raised(ProblemKind.COMPILE, error).message)
        program = "%0 = PARAM [1] {slot=0, dtype=bfloat16}\n%1 = NEG %0"
        inputs = {0: np.zeros(1, np_dtype(DTYPES["bfloat16"]))}
        has = isinstance(self._outcome(Program(program, (inputs,))), Outputs)
        return Probed(renderer, EVERY_DTYPE if has else EVERY_DTYPE - {"bfloat16"})

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        return [self._ask(program) for program in programs]

    def _ask(self, program: Program) -> Outcome:
        try:
            return self.child.ask(wire.Run((program,)), wire.Ran).outcomes[0]
        except EndedError as ended:
            return Problem(ProblemKind.CRASH, str(ended))

    def _answer(self, task: Probe | wire.Run) -> object:
        """Answer a task, in the child."""
        if isinstance(task, Probe):
            return self._capabilities()
        return wire.Ran(tuple(map(self._outcome, task.programs)))

    def _outcome(self, program: Program) -> Outcome:
        try:
            root = parse(program.text)
        except UopError as error:
            return Problem(ProblemKind.UNSUPPORTED, f"refused before tinygrad saw it: {error}")
        stage = ProblemKind.COMPILE
        try:
            plan = self._plan(root)
            stage = ProblemKind.TRAP
            return Outputs(tuple(plan.run(batch) for batch in program.batches))
        except (UopError, self.language.compile_error, *ERRORS) as error:
            return raised(stage, error)

    def _plan(self, root: UOp) -> Plan:
        if is_sharded(root):
            raise UnsupportedError("a program for several devices")
        memory = DeviceBuffers(self.language)
        if kind_of(root).calls_kernels:
            return _kernels(root, memory)
        return _effects(root, memory) if root.op is Op.SINK else _values(root, memory)


class DeviceBuffers:
    """The buffers of a program on a device, by slot."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self.buffers: dict[int, Node] = {}

    def translated(self, roots: Sequence[UOp]) -> list[Node]:
        """The nodes of values on these buffers."""
        return Graph(self.language, self.leaf).translated(roots)

    def leaf(self, u: UOp) -> Node:
        if u.dtype is dtypes.index:
            raise UnsupportedError("tinygrad has no storage for integers of any size")
        return self.language.reshape(self.flat(u), u.shape)

    def flat(self, u: UOp) -> Node:
        """The buffer of a PARAM or BUFFER."""
        slot = slot_of(u)
        if slot not in self.buffers:
            self.buffers[slot] = self.new(u)
        return self.buffers[slot]

    def new(self, u: UOp) -> Node:
        """A flat buffer for the elements of a value."""
        return self.language.buffer(prod(u.shape), u.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A scheduled program, and the buffers that it fills with values."""

    memory: DeviceBuffers
    linear: Any
    filled: tuple[tuple[UOp, Node], ...]

    def run(self, batch: Mapping[int, Array]) -> tuple[Array, ...]:
        """Run one batch. Outputs are poisoned before, so that an unwritten one shows."""
        language = self.memory.language
        for u, buffer in self.filled:
            language.write(buffer, b"\xa5" * (prod(u.shape) * u.dtype.itemsize))
        for slot, buffer in self.memory.buffers.items():
            if slot in batch:
                language.write(buffer, np.ascontiguousarray(batch[slot]).tobytes())
        if self.linear is not None:
            language.run(self.linear)
        return tuple(self._result(u, buffer) for u, buffer in self.filled)

    def _result(self, u: UOp, buffer: Node) -> Array:
        data = self.memory.language.read(buffer)
        return np.frombuffer(data, np_dtype(u.dtype)).reshape(u.shape)


def _values(root: UOp, memory: DeviceBuffers) -> Plan:
    """Store each output to a buffer of its own, as Tensor.clone does."""
    roots = root.src if root.op is Op.TUPLE else (root,)
    if any(u.dtype is dtypes.index for u in roots):
        raise UnsupportedError("tinygrad has no storage for integers of any size")
    filled = tuple((u, memory.new(u)) for u in roots)
    stores = []
    for (u, buffer), value in zip(filled, memory.translated(roots), strict=True):
        if prod(u.shape):
            target = memory.language.reshape(buffer, u.shape)
            store = memory.language.node("STORE", target, value)
            stores.append(memory.language.node("AFTER", target, store))
    return Plan(memory, memory.language.scheduled(stores), filled)


def _effects(root: UOp, memory: DeviceBuffers) -> Plan:
    """Store to buffers; elements that no store reaches keep their contents."""
    stores = [u for u in outside(root) if u.op is Op.STORE]
    if any(u.op is not Op.STORE for u in root.src) or any(
        u.src[0].op is not Op.BUFFER for u in stores
    ):
        raise UnsupportedError("tinygrad's sinks hold whole buffers: no other effect, no view")
    translated = memory.translated(root.src)
    effects = [memory.language.node("AFTER", store.src[0], store) for store in translated]
    stored = {slot_of(u.src[0]): u.src[0] for u in stores}
    filled = tuple((stored[slot], memory.buffers[slot]) for slot in sorted(stored))
    return Plan(memory, memory.language.scheduled(effects), filled)


def _kernels(root: UOp, memory: DeviceBuffers) -> Plan:
    """Run the CALLs in order, each of a kernel on whole buffers."""
    calls: list[Node] = []
    written: dict[int, UOp] = {}
    for u in outside(root):
        if u.op is Op.CALL:
            buffers = [base_of(a) for a in u.src[1:]]
            body = kernel(memory.language, u.src[0])
            used = [buffers[k] for k in used_slots(u.src[0])]
            calls.append(body.call(*(memory.flat(b) for b in used)))
            written |= {slot_of(buffers[k]): buffers[k] for k in written_slots(u)}
        elif not (u.declaration.is_source or u.op in (Op.SINK, Op.AFTER, Op.STACK, Op.GROUP)):
            raise UnsupportedError(f"tinygrad has no {u.op.name} between kernels")
    filled = tuple((written[slot], memory.buffers[slot]) for slot in sorted(written))
    linear = memory.language.compiled(memory.language.node("LINEAR", *calls))
    return Plan(memory, linear, filled)
