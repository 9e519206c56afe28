"""The contents of memory as values without effects, and the steps of a program (in callify).

A step is a FUNCTION that computes values into buffers, or a CALL of a kernel. Steps run one after
the other. A buffer has a version for the inputs and for each step that writes it: a PARAM stands
for each version.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from uop.compiler.rewriting.rewrite import Fired, unobserved
from uop.compiler.stages.callify.places import gated, stored
from uop.compiler.stages.order import free_slots, temporary
from uop.compiler.validity import Masked, Validity, absent
from uop.spec import graph
from uop.spec.args import AddrSpace, BufferArg, GetTupleArg, ParamArg, arg_of
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import is_variable, variables_of
from uop.spec.uop import UOp, const, dims


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A FUNCTION of a TUPLE, or a CALL of a kernel, on versions of buffers."""

    body: UOp
    """Its PARAMs are the arguments by position."""
    arguments: tuple[UOp, ...]
    """Versions. Those of a CALL are buffers (it reads their last versions), BINARYs and values in
    memory.
    """
    targets: Mapping[UOp, UOp]
    """The new version of each buffer that it writes, in the order of a TUPLE."""


def placeholder(leaf: UOp, slot: int | None = None, space: AddrSpace | None = None) -> UOp:
    """The PARAM of a buffer's contents, or of its memory, by default in its own slot."""
    arg = arg_of(leaf, ParamArg, BufferArg)
    held = ParamArg(arg.slot if slot is None else slot, arg.dtype, arg.device, space)
    if isinstance(arg, ParamArg):
        held = replace(held, min=arg.min, max=arg.max)
    return UOp(Op.PARAM, *leaf.src, arg=held)


def called(values: Iterable[UOp]) -> tuple[UOp, tuple[UOp, ...]]:
    """The body of a FUNCTION that computes values, and the versions that are its arguments."""
    body = UOp(Op.TUPLE, *values)
    read = sorted(
        {u for u in body.toposort() if u.op is Op.PARAM},
        key=lambda u: (graph.slot_of(u), u.addrspace is not None),
    )
    numbered: dict[UOp, UOp] = {}
    # The variables first, since sizes are computed from them.
    for version in sorted(read, key=is_variable, reverse=True):
        own = placeholder(version, read.index(version), version.addrspace)
        numbered[version] = own.with_src(s.substitute(numbered) for s in own.src)
    return body.substitute(numbered), tuple(read)


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """A version of a buffer, and the effects that have led to it."""

    version: UOp
    applied: frozenset[UOp]


class Steps:
    """The steps of a program, and for each value and location the value that a reader gets."""

    def __init__(self, root: UOp, returned: Collection[UOp], fired: Fired = unobserved) -> None:
        """`returned` are the buffers whose contents a program without a value returns."""
        self.root, self._returned, self._fired = root, returned, fired
        self.inputs = graph.slots_of(root)
        self.steps: list[Step] = []
        self.validity = Validity()
        self.values: dict[UOp, UOp] = {}
        self._order = graph.outside(root)
        self._numbers = {u: n for n, u in enumerate(self._order) if u.op in (Op.STORE, Op.CALL)}
        self._states = {u: [_State(placeholder(u), frozenset())] for u in self.inputs.values()}
        self._versions = {states[0].version for states in self._states.values()}
        self._tuples: dict[UOp, Sequence[UOp]] = {}
        self._crossing = _crossing(self._order)
        results = self._results()
        self._slots = free_slots(self.inputs.values(), len(results))
        for u in self._order:
            if u.op is Op.FUNCTION:
                self._tuples[u] = self._function(u)
            elif u.op is Op.CALL:
                self._call(u)
            elif u.dtype is not dtypes.void and u not in self.values:
                self.values[u] = self._value(u)
        self.outputs = self._outputs(results)
        """The BUFFER of each result, with its last version."""

    def initial(self) -> dict[UOp, UOp]:
        """The buffer of each version that is an input, and that of each PARAM of memory."""
        in_memory = (u for u in self._states if u.addrspace is not None)
        memory = {placeholder(u, space=AddrSpace.GLOBAL): u for u in in_memory}
        return memory | {states[0].version: u for u, states in self._states.items()}

    def temporary(self, like: UOp) -> UOp:
        """A new buffer for a value."""
        return temporary(next(self._slots), like.dtype, like.shape, like.device)

    def copied(self, buffer: UOp, version: UOp) -> Step:
        """A step that copies the version in a buffer to a new buffer."""
        return Step(*called([version]), {self.temporary(buffer): version})

    def _results(self) -> Sequence[UOp]:
        """The values that the program returns; none if it returns the contents of buffers."""
        if self.root.op is Op.TUPLE:
            return self.root.src
        return () if graph.returns_memory(self.root) else (self.root,)

    def _outputs(self, results: Sequence[UOp]) -> list[UOp]:
        if results:
            made = {}
            for slot, u in zip(free_slots(self.inputs.values()), results, strict=False):
                value = self.values[u]
                arg = BufferArg(slot, value.dtype, value.device)
                made[UOp(Op.BUFFER, dims(value.shape), arg=arg)] = value
            self._function_into(made)
            return [*made]
        effects = self._effects(self.root)
        bases = sorted(self._returned, key=graph.slot_of)
        self._write(bases, effects)
        return bases

    def _value(self, u: UOp) -> UOp:
        if u.op in graph.LEAVES:
            return placeholder(u)
        if u.op is Op.GETTUPLE:
            return self._tuples[u.src[0]][arg_of(u, GetTupleArg).idx]
        if u.op is Op.GETADDR:
            memory = placeholder(graph.base_of(u.src[0]), space=AddrSpace.GLOBAL)
            return u.with_src([graph.viewed(u.src[0], memory, self.values)])
        if u in self._crossing:
            self._copy_over(self._crossing[u])
            return self.values[u]
        if u.op is Op.LOAD and u.src[0].addrspace is not None:
            return self._seen(Steps.load_contents, u)
        if u.op is not Op.AFTER:
            return u.with_src([self.values[s] for s in u.src])
        if u.addrspace is None:
            return self.values[u.src[0]]
        return self._seen(Steps.contents_after_effects, u)

    def _seen(self, rule: Callable[[Steps, UOp], UOp], u: UOp) -> UOp:
        value = rule(self, u)
        self._fired(rule.__name__, u, value)
        return value

    def contents_after_effects(self, u: UOp) -> UOp:
        """A location AFTER effects is the value that they store there."""
        return graph.viewed(u, self._contents(graph.base_of(u), self._effects(u)), self.values)

    def load_contents(self, u: UOp) -> UOp:
        """A LOAD of a location: absent elements become the alternative, or 0."""
        contents, *others = (self.values[s] for s in u.src)
        if len(others) > 1 and contents.op is Op.INDEX and 0 not in contents.src[0].shape:
            contents = gated(contents, others[1])
        split = self.validity.split(contents)
        if split.mask is not None:
            alt = others[0] if others else const(0, u.dtype)
            contents = UOp(Op.WHERE, split.mask, split.value, alt)
        return u.with_src([contents, *others])

    def _copy_over(self, loads: Iterable[UOp]) -> None:
        """Copy parts of a value to other devices: each from a buffer there to one here. The mask
        keeps absent elements absent.
        """
        parts: dict[UOp, Masked] = {}
        for u in loads:
            source = u.src[0]
            if source not in self.values:
                whole, *window = source.src
                self.values[source] = source.with_src([self.values[whole], *window])
            is_memory = source.addrspace is not None
            there = self.load_contents(u).src[0] if is_memory else self.values[source]
            parts[u] = self.validity.split(there)
        held = [v for split in parts.values() for v in split if v is not None]
        here = [v for v in dict.fromkeys(held) if v.device is not None]
        versions = dict(zip(here, self._in_memory(here), strict=True))
        for u, split in parts.items():
            value, mask = (self._received(v, u, versions) for v in (split.value, split.mask))
            assert value is not None
            self.values[u] = value if mask is None else UOp(Op.WHERE, mask, value, absent(value))

    def _received(self, v: UOp | None, load: UOp, versions: Mapping[UOp, UOp]) -> UOp | None:
        """The version of a value on the device of a LOAD; what has none is computed there."""
        if v is None or v not in versions:
            return v
        copied = UOp(Op.LOAD, versions[v], arg=load.arg)
        return self._function_into({self.temporary(copied): copied})[0]

    def _effects(self, u: UOp) -> list[UOp]:
        """The effects that a node is or depends on, in an order in which they may run."""
        found = (s for s in graph.toposort([u], graph.outside_bodies) if s in self._numbers)
        return sorted(found, key=self._numbers.__getitem__)

    def _written_by(self, effect: UOp) -> Iterable[UOp]:
        """The buffers that a STORE or CALL writes."""
        if effect.op is Op.STORE:
            return (graph.base_of(effect.src[0]),)
        return (graph.base_of(effect.src[1 + k]) for k in graph.written_by(effect))

    def _contents(self, base: UOp, effects: Iterable[UOp]) -> UOp:
        """The contents of a buffer after effects.

        They start at the last version that no other effect has changed. A CALL may have run after
        others that have no order with a reader: those write none of the elements that it reads.
        """
        on_base = [e for e in effects if base in self._written_by(e)]
        calls = {e for e in on_base if e.op is Op.CALL}
        states = [s for s in self._states[base] if calls <= s.applied]
        inside = [s for s in states if s.applied <= set(on_base)]
        return self._continued(inside[-1] if inside else states[0], on_base)

    def _continued(self, state: _State, effects: Iterable[UOp]) -> UOp:
        """A version after those of the STOREs that it lacks."""
        contents = state.version
        for store in effects:
            if store not in state.applied:
                contents = stored(contents, store, self.values, self.validity)
        return contents

    def _function(self, u: UOp) -> Sequence[UOp]:
        """The results of a FUNCTION in memory; its values where an element may be INVALID."""
        body = graph.inlined(u.src[0])
        arguments = [self.validity.split(self.values[a]) for a in u.src[1:]]
        results = [self.validity.split(v) for v in body.src]
        if any(split.mask is not None for split in (*arguments, *results)):
            params = (p for p in graph.outside(body) if p.op is Op.PARAM)
            return graph.all_replaced(
                body.src, {p: self.values[u.src[1 + graph.slot_of(p)]] for p in params}
            )
        versions = self._in_memory([split.value for split in arguments])
        targets = {self.temporary(v): v for v in body.src}
        return [*self._step(body, versions, targets)]

    def _call(self, u: UOp) -> None:
        """Write what its arguments lack to memory, then call the kernel."""
        passed = [graph.passed_buffer(a) for a in u.src[1:]]
        leaves = [a if base is None else base for a, base in zip(u.src[1:], passed, strict=True)]
        self._write(dict.fromkeys(filter(None, passed)), self._effects(u)[:-1])
        sizes = {u.src[1 + graph.slot_of(v)] for v in variables_of(u.src[0])}
        values = [a for a in dict.fromkeys(leaves) if a not in passed and a not in sizes]
        versions = self._in_memory([self.validity.split(self.values[a]).value for a in values])
        written = dict.fromkeys(leaves[k] for k in graph.written_by(u))
        for a in written:
            if a in values:
                raise UnsupportedError(f"a kernel that stores to the copy of {a.op.name}")
        of_value = dict(zip(values, versions, strict=True))
        made = self._step(u.src[0], tuple(of_value.get(a, a) for a in leaves), written)
        for base, version in zip(written, made, strict=True):
            self._enter(base, version, {u})

    def _write(self, bases: Iterable[UOp], effects: Sequence[UOp]) -> None:
        """Write to memory what buffers lack of STOREs."""
        on_base = {b: [e for e in effects if b in self._written_by(e)] for b in bases}
        latest = {b: self._states[b][-1] for b in bases}
        lacking = [b for b in bases if not latest[b].applied.issuperset(on_base[b])]
        values = {b: self._continued(latest[b], on_base[b]) for b in lacking}
        for base, value in values.items():
            left = UOp(Op.AFTER, base, *on_base[base])
            self._fired(Steps.contents_after_effects.__name__, left, value)
        for base, version in zip(lacking, self._function_into(values), strict=True):
            self._enter(base, version, on_base[base])

    def _enter(self, base: UOp, version: UOp, effects: Iterable[UOp]) -> None:
        applied = self._states[base][-1].applied.union(effects)
        self._states[base].append(_State(version, applied))

    def _in_memory(self, values: Sequence[UOp]) -> tuple[UOp, ...]:
        """A version for each value: itself, or that of a new buffer."""
        new = [
            v for v in dict.fromkeys(values) if v not in self._versions and v.op is not Op.BINARY
        ]
        made = self._function_into({self.temporary(v): v for v in new})
        versions = dict(zip(new, made, strict=True))
        return tuple(versions.get(v, v) for v in values)

    def _function_into(self, values: Mapping[UOp, UOp]) -> Sequence[UOp]:
        """Add a FUNCTION on each device that computes values there; return their versions."""
        made: dict[UOp, UOp] = {}
        for device in dict.fromkeys(buffer.device for buffer in values):
            here = {buffer: v for buffer, v in values.items() if buffer.device == device}
            made.update(zip(here, self._step(*called(here.values()), here), strict=True))
        return [made[buffer] for buffer in values]

    def _step(self, body: UOp, arguments: tuple[UOp, ...], targets: Iterable[UOp]) -> Sequence[UOp]:
        made = {buffer: placeholder(buffer, next(self._slots)) for buffer in targets}
        self.steps.append(Step(body, arguments, made))
        self._versions.update(made.values())
        return [*made.values()]


CONTENTS = tuple(rule.__name__ for rule in (Steps.load_contents, Steps.contents_after_effects))


def _crossing(order: Iterable[UOp]) -> dict[UOp, list[UOp]]:
    """For each LOAD to another device the LOADs of parts of the same value."""
    found: dict[UOp, list[UOp]] = {}
    for u in order:
        if u.op is Op.LOAD and u.src[0].device not in (None, u.device):
            source = u.src[0].src[0] if u.src[0].op is Op.SHRINK else u.src[0]
            found.setdefault(source, []).append(u)
    return {u: loads for loads in found.values() for u in loads}
