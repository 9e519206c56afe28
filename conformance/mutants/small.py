"""A small compiler to numpy, with twelve ops on int32 and float32, for mutants to seed faults in.

It shares no evaluation with the interpreter. It has the parts of a small compiler: rewrite rules
(`small_graph`), strided views, fused expressions, reused buffers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from uop.conformance.backends.attempt import attempt
from uop.conformance.mutants.small_graph import BOOL, FLOAT, INT, Graph, Node, Shape
from uop.conformance.protocol.types import Hello, Limits, Outcome, Outputs, Program
from uop.spec.graph import toposort
from uop.spec.latitude import STRICT
from uop.spec.ops.names import Op
from uop.spec.text.program import parse

Array = npt.NDArray[Any]
CODE: Mapping[Op, str] = {
    Op.ADD: "({} + {})",
    Op.SUB: "({} - {})",
    Op.MUL: "({} * {})",
    Op.NEG: "(-{})",
    Op.CMPLT: "({} < {})",
    Op.WHERE: "np.where({}, {}, {})",
    Op.MAX: "np.maximum({}, {})",
    Op.CAST: "cast({}, {dtype})",
    Op.CONST: "word({bits}, {dtype})",
}
"""The ops of expressions; a WHERE may become a MAX."""
OPS = "PARAM CONST ADD SUB MUL NEG CMPLT WHERE CAST RESHAPE EXPAND REDUCE"
DEEPEST = 8
"""The longest chain of ops in one expression."""
BLOCK = 1024
"""An expression is evaluated on so many elements at a time."""


class SmallBackend:
    """Compiles a program once and runs it on each of its batches."""

    def hello(self) -> Hello:
        return Hello(
            "small",
            "1",
            "numpy",
            frozenset(OPS.split()),
            frozenset({"int32", "float32"}),
            Limits(devices=1),
            profile=str(STRICT),
        )

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        return [attempt(partial(answer, program)) for program in programs]


def answer(program: Program) -> Outputs:
    with np.errstate(all="ignore"):
        plan = Plan(Graph().read(parse(program.text)))
        return Outputs(tuple((plan.run(batch),) for batch in program.batches))


@dataclass(frozen=True, slots=True)
class View:
    """A strided view of the buffer of `owner`: a step per axis, in elements."""

    owner: Node
    shape: Shape
    steps: Shape

    @classmethod
    def of(cls, owner: Node, shape: Shape) -> View:
        """The whole buffer, row-major."""
        return cls(owner, shape, tuple(prod(shape[axis + 1 :]) for axis in range(len(shape))))

    @property
    def is_plain(self) -> bool:
        plain = View.of(self.owner, self.shape).steps
        return all(n == 1 or s == p for n, s, p in zip(self.shape, self.steps, plain, strict=True))

    def broadcast(self, shape: Shape) -> View:
        steps = tuple(0 if n == 1 else s for n, s in zip(self.shape, self.steps, strict=True))
        return View(self.owner, shape, (0,) * (len(shape) - len(steps)) + steps)

    def axes(self, chosen: Sequence[int]) -> View:
        """The view of some of its axes, those of a loop."""
        return View(
            self.owner,
            tuple(self.shape[axis] for axis in chosen),
            tuple(self.steps[axis] for axis in chosen),
        )

    def places(self, start: int, stop: int) -> Array:
        """The positions of a range of elements in the buffer."""
        rest = np.arange(start, stop)
        places = np.zeros_like(rest)
        for n, step in zip(reversed(self.shape), reversed(self.steps), strict=True):
            places += rest % n * step
            rest //= n
        return places

    def read(self, memory: Array, start: int, stop: int) -> Array:
        if self.is_plain:
            return memory[start:stop]
        return taken(memory, self.places(start, stop))


@dataclass(frozen=True, slots=True)
class Map:
    """A step of a plan: an expression of the same element of several views."""

    node: Node
    views: tuple[View, ...]
    kernel: Callable[..., Array]

    def block(self, memories: Sequence[Array], start: int, stop: int) -> Array:
        read = [v.read(m, start, stop) for v, m in zip(self.views, memories, strict=True)]
        return self.kernel(*read)


@dataclass(frozen=True, slots=True)
class Fold:
    """A step of a plan: each element is the sum or product of a loop over some axes."""

    node: Node
    views: tuple[View, ...]

    def block(self, memories: Sequence[Array], start: int, stop: int) -> Array:
        (view,), (memory,), (op, axes) = self.views, memories, self.node.arg
        loop = view.axes(axes)
        kept = view.axes([axis for axis in range(len(view.shape)) if axis not in axes])
        places = kept.places(start, stop)
        total = np.full(stop - start, 0 if op is Op.ADD else 1, self.node.dtype)
        combine = np.add if op is Op.ADD else np.multiply
        for offset in loop.places(0, prod(loop.shape)):
            total = combine(total, taken(memory, places + offset))
        return total


class Plan:
    """The steps that compute a value, and the memory that they use."""

    def __init__(self, root: Node) -> None:
        order = toposort([root], lambda u: u.src)
        self.users = Counter(s for u in order for s in u.src)
        self.fused = {s for u in order if u.op in CODE for s in u.src if self.users[s] == 1}
        self.depth: dict[Node, int] = {}
        self.views: dict[Node, View] = {}
        self.steps: list[Map | Fold] = []
        self.params = [u for u in order if u.op is Op.PARAM]
        for u in order:
            self.plan(u)
        self.root = self.view(root)
        self.dying = self.last_reads()
        self.memory: dict[Node, Array] = {}
        self.pool: dict[tuple[int, str], list[Array]] = defaultdict(list)

    def plan(self, u: Node) -> None:
        """Add the step that fills the buffer of a node, unless it needs none."""
        if u.op is Op.PARAM:
            self.views[u] = View.of(u, u.shape)
        elif u.op is Op.EXPAND:
            self.views[u] = self.view(u.src[0]).broadcast(u.shape)
        elif u.op is Op.RESHAPE:
            self.reshape(u)
        elif u.op is Op.REDUCE:
            self.store(u, Fold(u, (self.view(u.src[0]),)))
        else:
            self.depth[u] = 1 + max((self.depth.get(s, 0) for s in u.src), default=0)
            if u.op is not Op.CONST and (u not in self.fused or self.depth[u] >= DEEPEST):
                self.view(u)

    def view(self, u: Node) -> View:
        """The view of a node; an expression is stored first."""
        if u not in self.views:
            views: dict[Node, View] = {}
            body = self.expression(u, u, views)
            kernel = compiled(f"lambda {', '.join(map(name, range(len(views))))}: {body}")
            self.store(u, Map(u, tuple(views.values()), kernel))
            self.depth[u] = 0
        return self.views[u]

    def store(self, u: Node, step: Map | Fold) -> None:
        self.steps.append(step)
        self.views[u] = View.of(u, u.shape)

    def reshape(self, u: Node) -> None:
        """View the same buffer in another shape, or copy it where its elements are not in order."""
        view = self.view(u.src[0])
        if view.is_plain:
            self.views[u] = View.of(view.owner, u.shape)
        elif not any(view.steps):
            # The same element everywhere.
            self.views[u] = View(view.owner, u.shape, (0,) * len(u.shape))
        else:
            self.store(u, Map(u, (view,), compiled("lambda v0: v0")))

    def expression(self, u: Node, root: Node, views: dict[Node, View]) -> str:
        """The code of a node; adds the views that it reads."""
        if u in self.views:
            views.setdefault(u, self.views[u].broadcast(root.shape))
            return name(list(views).index(u))
        src = (self.expression(s, root, views) for s in u.src)
        return CODE[u.op].format(*src, dtype=u.dtype.name, bits=u.arg)

    def last_reads(self) -> list[list[Node]]:
        """For each step the buffers that no later step reads."""
        last = {v.owner: k for k, step in enumerate(self.steps) for v in step.views}
        last.pop(self.root.owner, None)
        return [[u for u, at in last.items() if at == k] for k in range(len(self.steps))]

    def run(self, inputs: Mapping[int, Array]) -> Array:
        for u in self.params:
            self.memory[u] = self.buffer(u)
            self.memory[u][:] = np.ravel(inputs[u.arg])
        for step, dying in zip(self.steps, self.dying, strict=True):
            memories = [self.memory[view.owner] for view in step.views]
            # A buffer may be written by the step that reads it last: each element is read before it
            # is written.
            for u in dying:
                self.release(u)
            out = self.memory[step.node] = self.buffer(step.node)
            for start in range(0, out.size, BLOCK):
                stop = min(start + BLOCK, out.size)
                out[start:stop] = step.block(memories, start, stop)
        size = prod(self.root.shape)
        result = self.root.read(self.memory[self.root.owner], 0, size).copy()
        self.release(self.root.owner)
        return result.reshape(self.root.shape)

    def buffer(self, u: Node) -> Array:
        size = prod(u.shape)
        free = self.pool[size, u.dtype.name]
        return free.pop() if free else np.empty(size, u.dtype)

    def release(self, u: Node) -> None:
        memory = self.memory[u]
        self.pool[memory.size, memory.dtype.name].append(memory)


def taken(memory: Array, places: Array) -> Array:
    """Gather elements by position; none is out of bounds, and mode clip is fast."""
    return memory.take(places, mode="clip")


def name(position: int) -> str:
    return f"v{position}"


def word(bits: int, dtype: np.dtype[Any]) -> Any:
    """The number with these bits: decimal digits would round a float."""
    return np.array(bits, np.uint8 if dtype == BOOL else np.uint32).view(dtype)[()]


def cast(values: Array, dtype: np.dtype[Any]) -> Array:
    return values.astype(dtype)


@cache
def compiled(source: str) -> Callable[..., Array]:
    """Compile a source, which consists of names, numbers and CODE."""
    kernel: Callable[..., Array] = eval(source, KNOWN)
    return kernel


KNOWN = {"np": np, "word": word, "cast": cast, "bool": BOOL, "int32": INT, "float32": FLOAT}
"""The names in a source."""
