"""Backends by a Builder: a subclass says who it is and how it compiles a program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, Generic, TypeVar

import numpy as np

from uop.conformance.adapters.builder import Builder
from uop.conformance.adapters.compositions import COMPUTED, compositions
from uop.conformance.adapters.walk import build
from uop.conformance.backends.attempt import ERRORS, raised
from uop.conformance.backends.versions import fitting, version_of
from uop.conformance.protocol.types import Hello, Limits, Outcome, Outputs, ProblemKind, Program
from uop.conformance.suite.levels.nodes import (
    bitcast,
    cast,
    expand,
    flip_all,
    fold,
    pad,
    permute,
    reshape,
    shrink,
)
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import InvalidError, UnsupportedError, UopError
from uop.spec.graph import slots_of
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, ops_of
from uop.spec.text.program import parse
from uop.spec.uop import UOp, const, param

Inputs = Mapping[int, Array]
Run = Callable[[Inputs], Sequence[Array]]
"""Runs a compiled program on inputs by slot."""
RunAll = Callable[[Sequence[Inputs]], Sequence[Sequence[Array]]]
"""Runs programs that were compiled together, each on its inputs."""
LAYOUTS: Mapping[Op, Callable[[UOp], UOp]] = {
    Op.RESHAPE: lambda x: reshape(x, (2, 1)),
    Op.EXPAND: lambda x: expand(x, (3, 2)),
    Op.PERMUTE: lambda x: permute(x, (1, 0)),
    Op.FLIP: flip_all,
    Op.SHRINK: lambda x: shrink(x, (0, 1), (1, 1)),
    Op.PAD: lambda x: pad(x, (0, 1), (1, 4)),
    Op.STACK: lambda x: UOp(Op.STACK, x, x),
    Op.INDEX: lambda x: UOp(Op.INDEX, x, const(0, dtypes.index), param(1, (2,), dtypes.int32)),
    Op.BITCAST: lambda x: bitcast(x, dtypes.uint8),
}
"""An op on a value of shape (1, 2)."""
P = TypeVar("P")
T = TypeVar("T")
R = TypeVar("R")


class LibraryBackend(ABC):
    """Compiles each program once by a library, and runs it on each batch."""

    name: str
    distribution: str
    """The package on PyPI, whose version is that of the backend."""
    builder: type[Builder[Any]]
    dtypes: frozenset[DType]
    profile = "strict"
    variant = ""
    programs = 64
    """The most programs in one call."""
    errors = ERRORS
    """The errors of the library."""
    tested: tuple[str, ...] = ()
    """The versions of the package that the adapter was tested with: `0.14` is every 0.14.x. None
    where the class itself is judged, not a library by it.
    """

    def start(self) -> str:
        """Import the library; the name of the device. UnsupportedError where it is missing."""
        return "CPU"

    @abstractmethod
    def compiled(self, root: UOp) -> Run:
        """A program, compiled. Results have the dtypes and shapes of its outputs."""

    def supports(self) -> Mapping[str, frozenset[DType]]:
        """By op the dtypes on which alone the library has it, after `start`."""
        return {}

    def hello(self) -> Hello:
        with fitting(self.distribution, self.tested):
            device = self.start()
            supports = self.supports()
        table = compositions(self.builder.ops, self.builder.partial)
        # A library has the others by the walk, or a program has them no longer when it is walked.
        others = {Op.AFTER, Op.GROUP, Op.SINK} | COMPUTED ^ set(Op) - ops_of("codegen", "ordering")
        lacking = {name for name, kinds in supports.items() if not kinds}
        return Hello(
            self.name,
            version_of(self.distribution),
            device,
            frozenset(op.name for op in {*table, *others} if op.name not in lacking),
            frozenset(dtype.name for dtype in self.dtypes),
            Limits(self.programs, devices=1),
            frozenset({"tensor"}),
            profile=self.profile,
            variant=self.variant,
            supports={
                name: frozenset(d.name for d in kinds) for name, kinds in supports.items() if kinds
            },
            composed={
                op.name: tuple(sorted(p.name for p in ps))
                for op, ps in {**table, **self.builder.composes}.items()
                if ps and op.name not in lacking
            },
            tested=self.tested,
        )

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        return [self._outcome(program) for program in programs]

    @property
    def _caught(self) -> tuple[type[Exception], ...]:
        """The errors that are reported as problems of a program."""
        return (UopError, *self.errors)

    def _outcome(self, program: Program) -> Outcome:
        kind = ProblemKind.COMPILE
        try:
            root = parse(program.text)
            run = self.compiled(root)
            kind = ProblemKind.INTERNAL
            return Outputs(tuple(owned(run(inputs)) for inputs in batches_of(root, program)))
        except self._caught as error:
            return raised(kind, error)


class JointBackend(LibraryBackend, Generic[P]):
    """Compiles the programs of a call together, where compiling one costs much.

    P is a program as the library takes it.
    """

    @abstractmethod
    def prepared(self, root: UOp) -> P:
        """A program for the library; UnsupportedError if it has no image."""

    @abstractmethod
    def together(self, programs: Sequence[P]) -> RunAll:
        """Programs, compiled as one."""

    def compiled(self, root: UOp) -> Run:
        run = self.together([self.prepared(root)])
        return lambda inputs: run([inputs])[0]

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        outcomes: dict[int, Outcome] = dict.fromkeys(range(len(programs)), Outputs(()))
        jobs = []
        for place, program in enumerate(programs):
            try:
                root = parse(program.text)
                job = _Job(place, self.prepared(root), batches_of(root, program))
            except self._caught as error:
                outcomes[place] = raised(ProblemKind.COMPILE, error)
            else:
                jobs += [job] * bool(job.batches)
        for part, run in bisect(jobs, self._compiled, self._caught):
            if isinstance(run, Exception):
                outcomes[part[0].place] = raised(ProblemKind.COMPILE, run)
            else:
                results = self._ran(run, part)
                outcomes |= {job.place: r for job, r in zip(part, results, strict=True)}
        return [outcomes[place] for place in range(len(programs))]

    def _compiled(self, jobs: Sequence[_Job[P]]) -> RunAll:
        return self.together([job.program for job in jobs])

    def _ran(self, run: RunAll, jobs: Sequence[_Job[P]]) -> list[Outcome]:
        """Run a batch of each program at a time; a program with few batches runs its last again."""
        rounds = range(max(len(job.batches) for job in jobs))
        try:
            every = [[owned(r) for r in run([job.batch(n) for job in jobs])] for n in rounds]
        except self._caught as error:
            if len(jobs) == 1:
                return [raised(ProblemKind.INTERNAL, error)]
            return [o for job in jobs for o in self._ran(self._compiled([job]), [job])]
        return [
            Outputs(tuple(results[k] for results in every[: len(job.batches)]))
            for k, job in enumerate(jobs)
        ]


@dataclass(frozen=True, slots=True, eq=False)
class _Job(Generic[P]):
    """A program of a call, by its place."""

    place: int
    program: P
    batches: Sequence[Inputs]

    def batch(self, n: int) -> Inputs:
        return self.batches[min(n, len(self.batches) - 1)]


def batches_of(root: UOp, program: Program) -> list[Inputs]:
    """The batches of a program, with zeros for a buffer that has no contents before it runs."""
    empty = {slot: np.zeros(u.shape, np_dtype(u.dtype)) for slot, u in slots_of(root).items()}
    return [{**empty, **batch} for batch in program.batches]


def owned(results: Sequence[Array]) -> tuple[Array, ...]:
    """Copies of results: a library may overwrite or free its memory on the next run."""
    return tuple(np.array(a) for a in results)


def imported(extra: str, *names: str) -> list[ModuleType]:
    """Import modules of a library; UnsupportedError with the pip line where one is missing."""
    try:
        return [import_module(name) for name in names]
    except ImportError as error:
        raise UnsupportedError(f'{error}; install it with: pip install "uop[{extra}]"') from error


def bisect(
    items: Sequence[T], compile: Callable[[Sequence[T]], R], errors: tuple[type[Exception], ...]
) -> list[tuple[Sequence[T], R | Exception]]:
    """Compile items together, or in halves where that raises one of these errors.

    Returns parts of the items in order, each with its result; an error stands for one item alone.
    """
    if not items:
        return []
    try:
        return [(items, compile(items))]
    except errors as error:
        if len(items) == 1:
            return [(items, error)]
    middle = len(items) // 2
    return [*bisect(items[:middle], compile, errors), *bisect(items[middle:], compile, errors)]


def cells(make: Callable[[], Builder[Any]], kinds: Iterable[DType]) -> dict[str, frozenset[DType]]:
    """By op the dtypes on which builders translate it, of ops that they do not on all of them."""
    kinds = frozenset(kinds)
    found: dict[str, frozenset[DType]] = {}
    first = make()
    for op in (*LAYOUTS, Op.REDUCE, *compositions(first.ops, first.partial)):
        on = frozenset(dtype for dtype in kinds if _has(op, dtype, make))
        if on < kinds:
            found[op.name] = on
    return found


def programs_of(op: Op, x: UOp) -> list[UOp]:
    """Programs that need an op on a value of shape (1, 2); InvalidError where it takes none."""
    if op in LAYOUTS:
        return [LAYOUTS[op](x)]
    if op is Op.REDUCE:
        return [fold(by, x, (1,)) for by in (Op.ADD, Op.MUL, Op.MAX)]
    if op is Op.CAST:
        return [cast(x, dtypes.int32 if x.dtype.is_float else dtypes.float32)]
    names = enumerate(DECLARATIONS[op].src)
    operands = [param(k + 1, (1, 2), dtypes.bool) if name == "P" else x for k, name in names]
    return [UOp(op, *operands)]


def _has(op: Op, dtype: DType, make: Callable[[], Builder[Any]]) -> bool:
    """Whether a program of an op on a dtype is built; a cell that the language lacks counts."""
    try:
        programs = programs_of(op, param(0, (1, 2), dtype))
    except InvalidError:
        return True
    try:
        for root in programs:
            build([root], make())
    except UnsupportedError:
        return False
    return True
