"""The stage callify: a program becomes one FUNCTION without effects, and STOREs of its results.

Inside the function a location after STOREs becomes the value that they leave there.
"""

from __future__ import annotations

from collections.abc import Iterable

from uop.compiler.rewrite import Fired, quietly
from uop.compiler.validity import TRUE, Validity, both, full
from uop.spec.args import BufferArg, DTypeArg, GetTupleArg, ParamArg, arg_of
from uop.spec.conditions.labels import CALLIFY_TARGET
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.graph import LEAVES, base_of, inlined, put_back, slot_of, slots_of, viewed, views_of
from uop.spec.ops.names import VIEWS, Op
from uop.spec.uop import UOp, const, dims
from uop.spec.walk import toposort

WRITTEN_THROUGH = VIEWS - {Op.EXPAND, Op.PAD}
"""The views that a STORE may go through."""
KERNEL_OPS = (Op.CALL, Op.RANGE, Op.END, Op.SPECIAL, Op.LINEAR, Op.PROGRAM, Op.SOURCE)
"""Ops of kernel programs, which a tensor graph does not have."""


def callify(root: UOp, fired: Fired = quietly) -> UOp:
    """SINK(STORE(BUFFER_k, GETTUPLE(FUNCTION(TUPLE(v...), a...), k))...)."""
    plain = inlined(root)
    _reject_kernels(plain)
    _reject_shards(plain)
    program = _PureValues(_with_views(plain))
    outputs = program.outputs()
    if not outputs:
        return UOp(Op.SINK)
    arguments = program.arguments(value for _, value in outputs)
    renumbered = {
        _placeholder(leaf): _placeholder(leaf, position) for position, leaf in enumerate(arguments)
    }
    body = UOp(Op.TUPLE, *(value for _, value in outputs)).substitute(renumbered)
    function = UOp(Op.FUNCTION, body, *arguments)
    return UOp(
        Op.SINK,
        *(
            UOp(Op.STORE, target, UOp(Op.GETTUPLE, function, arg=GetTupleArg(k)))
            for k, (target, _) in enumerate(outputs)
        ),
    )


def _reject_kernels(root: UOp) -> None:
    for u in root.toposort():
        if u.op in KERNEL_OPS:
            raise UnsupportedError(f"callify: {u.op.name} in a tensor graph")
        if u.op is Op.GETADDR:
            raise UnsupportedError("the compiler takes no GETADDR: a device may move its memory")


def _reject_shards(root: UOp) -> None:
    """UnsupportedError for sharded values: later stages compile for one device."""
    for u in root.toposort():
        if isinstance(u.device, tuple):
            names = ", ".join(u.device)
            raise UnsupportedError(
                f"callify: {u.op.name} on the devices ({names}); a program is compiled for one"
            )


def _with_views(root: UOp) -> UOp:
    """Decompose REPLICATED and SLICE, which are views on one device."""
    new: dict[UOp, UOp] = {}
    for u in root.toposort():
        same = u.with_src([new[s] for s in u.src])
        views = same.decompose() if u.op in (Op.REPLICATED, Op.SLICE) else None
        new[u] = same if views is None else views
    return new[root]


def _placeholder(leaf: UOp, slot: int | None = None) -> UOp:
    """The PARAM of an input's contents inside the function."""
    arg = arg_of(leaf, ParamArg, BufferArg)
    return UOp(
        Op.PARAM,
        *leaf.src,
        arg=ParamArg(arg.slot if slot is None else slot, arg.dtype, arg.device),
    )


class _PureValues:
    """A graph without effects: for each value and location the value that a reader gets."""

    def __init__(self, root: UOp) -> None:
        self.root = root
        self.validity = Validity()
        self.inputs = slots_of(root)
        self.values: dict[UOp, UOp] = {}
        for u in root.toposort():
            if u.dtype is not dtypes.void:
                self.values[u] = self._value(u)

    def outputs(self) -> list[tuple[UOp, UOp]]:
        """The BUFFER and the value of each result."""
        if self.root.dtype is dtypes.void and self.root.op is not Op.TUPLE:
            stores = _stores(self.root)
            bases = sorted({base_of(s.src[0]) for s in stores}, key=slot_of)
            return [(base, self._contents(base, stores)) for base in bases]
        results = self.root.src if self.root.op is Op.TUPLE else (self.root,)
        fresh = max(self.inputs, default=-1) + 1
        return [
            (_output(fresh + k, self.values[result]), self.values[result])
            for k, result in enumerate(results)
        ]

    def arguments(self, values: Iterable[UOp]) -> list[UOp]:
        """The inputs that the values read, by slot."""
        slots = {slot_of(u) for u in toposort(values, lambda v: v.src) if u.op is Op.PARAM}
        return [self.inputs[slot] for slot in sorted(slots)]

    def _value(self, u: UOp) -> UOp:
        if u.op in LEAVES:
            return _placeholder(u)
        if u.op is Op.LOAD and u.src[0].addrspace is not None:
            return self._loaded(u)
        if u.op is not Op.AFTER:
            return u.with_src([self.values[s] for s in u.src])
        if u.addrspace is None:
            return self.values[u.src[0]]
        base = base_of(u)
        contents = self._contents(base, _stores(u))
        return viewed(u, contents, self.values)

    def _loaded(self, u: UOp) -> UOp:
        """A LOAD of a location: absent elements become alt or 0."""
        contents, *others = (self.values[s] for s in u.src)
        split = self.validity.split(contents)
        if split.mask is not None:
            alt = others[0] if others else const(0, u.dtype)
            contents = UOp(Op.WHERE, split.mask, split.value, alt)
        return u.with_src([contents, *others])

    def _contents(self, base: UOp, stores: Iterable[UOp]) -> UOp:
        """The contents of a BUFFER after STOREs, which are in an order in which they may run."""
        contents = self.values[base]
        for store in stores:
            if base_of(store.src[0]) is base:
                contents = self._written(contents, store)
        return contents

    def _written(self, contents: UOp, store: UOp) -> UOp:
        """The contents after one STORE; INVALID elements keep the old contents."""
        target, stored, *gates = store.src
        split = self.validity.split(self.values[stored])
        value, inside = split.value, split.mask
        for gate in gates:
            condition = self.validity.split(self.values[gate])
            inside = both(inside, both(condition.value, condition.mask))
        return self._put(contents, target, value, inside)

    def _put(self, contents: UOp, target: UOp, value: UOp, inside: UOp | None) -> UOp:
        """The contents with a value in the place of a view of them, where a mask is true."""
        for view in views_of(target):
            if view.op is Op.BITCAST:
                # What the bytes below are as elements of this dtype, with the value among them.
                bits = viewed(view, contents, self.values)
                new = value if inside is None else UOp(Op.WHERE, inside, value, bits)
                old = UOp(Op.BITCAST, new, arg=DTypeArg(view.src[0].dtype))
                return self._put(contents, view.src[0], old, None)
            if view.op not in WRITTEN_THROUGH:
                raise CALLIFY_TARGET.lacking(repr(view), view.op.name)
            if view.op is Op.SHRINK and inside is None and view.shape != view.src[0].shape:
                inside = full(TRUE, value.shape)
            value = put_back(view, value)
            inside = None if inside is None else put_back(view, inside)
        return value if inside is None else UOp(Op.WHERE, inside, value, contents)


def _output(slot: int, value: UOp) -> UOp:
    return UOp(Op.BUFFER, dims(value.shape), arg=BufferArg(slot, value.dtype, value.device))


def _stores(u: UOp) -> list[UOp]:
    """The STOREs that u depends on."""
    return [s for s in u.toposort() if s.op is Op.STORE]
