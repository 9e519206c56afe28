"""The walk over a tensor program: a Builder makes its nodes; shapes and ops are explicit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Generic

import numpy as np

from uop.compiler.stages.callify.devices import is_on_several
from uop.compiler.stages.callify.stage import callify
from uop.compiler.validity import Validity
from uop.conformance.adapters.builder import Builder, V, identity_of
from uop.conformance.adapters.compositions import COMPUTED, composed, compositions
from uop.interpreter.numeric.storage import Array, constant, np_dtype
from uop.spec.args import (
    BinaryArg,
    BufferArg,
    ConstArg,
    DTypeArg,
    FlipArg,
    LoadArg,
    ParamArg,
    PermuteArg,
    ReduceArg,
    arg_of,
)
from uop.spec.conditions.clauses import undefined
from uop.spec.dtype import DType
from uop.spec.errors import LackingError, UnsupportedError
from uop.spec.extension import in_core_ops
from uop.spec.graph import LEAVES, ProgramKind, all_inlined, kind_of, slot_of, toposort
from uop.spec.ops.names import Op
from uop.spec.properties.shape import index_values
from uop.spec.properties.symbolic import with_bound_variables
from uop.spec.registry import Shape
from uop.spec.uop import UOp, described


def values_of(root: UOp) -> tuple[UOp, ...]:
    """The results of a tensor program as values: no FUNCTION, STORE or INVALID element is left.

    A value, the members of a TUPLE, or the contents of the written buffers by slot. Elements that
    are INVALID in the program have some value. UnsupportedError for a program with kernels, on
    several devices or with symbolic sizes.
    """
    if (kind := kind_of(root)) is not ProgramKind.TENSOR:
        raise UnsupportedError(f"expected a tensor program, found one of the kind {kind.value}")
    # The extension ops that a library may have.
    kept = frozenset({Op.CDIV, Op.CMOD, Op.MIN, Op.REDUCE})
    program = callify(_on_one_device(in_core_ops(with_bound_variables(root), kept)))
    results = [store.src[1] for store in program.src]
    plain = all_inlined(results)
    validity = Validity()
    return tuple(validity.split(plain[u]).value for u in results)


def _on_one_device(root: UOp) -> UOp:
    """A program that names one device at most: a library copies nothing between several.
    UnsupportedError for values that are split over them.
    """
    if not is_on_several(root):
        return root
    new: dict[UOp, UOp] = {}
    for u in root.toposort():
        if isinstance(u.device, tuple):
            raise UnsupportedError(f"{u.op.name} on the devices ({', '.join(u.device)})")
        arg = u.arg
        if isinstance(arg, (BufferArg, ParamArg, LoadArg)):
            arg = replace(arg, device=None)
        new[u] = UOp(u.op, *(new[s] for s in u.src), arg=arg, tag=u.tag)
    return new[root]


def build(values: Sequence[UOp], builder: Builder[V]) -> list[V]:
    """Values, as `values_of` gives them, as values of a library; shared nodes are made once.

    UnsupportedError for what the library cannot express.
    """
    walk = BuilderWalk(builder)
    return [walk.value(u) for u in values]


@dataclass(slots=True)
class BuilderWalk(Generic[V]):
    """A builder, and what it has made of nodes."""

    builder: Builder[V]
    _done: dict[UOp, V] = field(default_factory=dict)

    def value(self, root: UOp) -> V:
        """A node in the library."""
        for u in toposort([root], lambda v: () if v in self._done else _operands(v)):
            if u not in self._done:
                self._done[u] = self._placed(u)
        return self._done[root]

    def _placed(self, u: UOp) -> V:
        """A node, whose errors name it."""
        try:
            return self._made(u)
        except LackingError:
            raise
        except UnsupportedError as error:
            raise LackingError("", str(error), described(u)) from None

    def _made(self, u: UOp) -> V:
        if u.op in COMPUTED:
            return self._elementwise(u)
        if u.op in LEAVES:
            return self.builder.param(slot_of(u), u.dtype, _static(u.shape))
        if u.op is Op.CONST:
            arg = arg_of(u, ConstArg)
            return self.builder.const(constant(arg.bits, arg.dtype), arg.dtype)
        if u.op is Op.BINARY:
            data = np.frombuffer(arg_of(u, BinaryArg).data, np.uint8)
            return self.builder.const(data, u.dtype)
        if u.declaration.section == "marker" or u.op is Op.LOAD:
            if len(u.src) < 3:
                return self._done[u.src[0]]
            # A LOAD of a value with a gate is a choice.
            value, alt, gate = u.src
            return self.value(UOp(Op.WHERE, gate, value, alt))
        is_layout = u.declaration.is_view or u.op in (Op.INDEX, Op.STACK, Op.BITCAST, Op.REDUCE)
        if not is_layout:
            raise UnsupportedError(f"no {u.op.name} in the tensor programs of adapters")
        if u.op is Op.INDEX:
            return self._index(u)
        if u.op is Op.STACK:
            if not u.src:
                raise UnsupportedError("a STACK of nothing")
            return self.builder.stack([self._done[s] for s in u.src])
        return self._moved(u, self._done[_viewed(u)])

    def _elementwise(self, u: UOp) -> V:
        table = compositions(self.builder.ops, self.builder.partial)
        if u.op not in table:
            raise UnsupportedError(f"the library has no {u.op.name}, nor a composition of it")
        new = composed(u, self.builder.ops, self.builder.partial)
        if new is not None:
            return self._fit(self.value(new), new.shape, u.shape)
        operands = [self._fit(self._done[s], s.shape, u.shape) for s in u.src]
        return self.builder.elementwise(u.op, u.dtype, operands)

    def _fit(self, x: V, old: Shape, new: Shape) -> V:
        """Broadcast, right-aligned."""
        return x if old == new else self.builder.broadcast(x, _static(new))

    def _moved(self, u: UOp, x: V) -> V:
        builder, old = self.builder, u.src[0].shape
        if u.op is Op.BITCAST:
            dtype = arg_of(u, DTypeArg).dtype
            return x if dtype is u.src[0].dtype else builder.bitcast(x, dtype, u.shape)
        if u.op is Op.REDUCE:
            return self._reduce(u, x)
        if u.shape == old and u.declaration.size_operand is not None:
            return x
        if u.op is Op.RESHAPE:
            return builder.reshape(x, _static(u.shape))
        if u.op is Op.EXPAND:
            return builder.broadcast(x, _static(u.shape))
        if u.op is Op.PERMUTE:
            return builder.permute(x, arg_of(u, PermuteArg).order)
        if u.op is Op.FLIP:
            flags = arg_of(u, FlipArg).flags
            axes = [k for k, flag in enumerate(flags) if flag]
            return builder.flip(x, axes) if axes else x
        start = index_values(u.src[1])
        if u.op is Op.SHRINK:
            return builder.shrink(x, start, [a + n for a, n in zip(start, u.shape, strict=True)])
        after = [n - a - m for n, a, m in zip(u.shape, start, old, strict=True)]
        return builder.pad(x, start, after)

    def _reduce(self, u: UOp, x: V) -> V:
        arg, shape = arg_of(u, ReduceArg), u.src[0].shape
        if len(u.src) > 1:
            raise UnsupportedError("a REDUCE over RANGEs outside of a kernel")
        axes = [a for a in arg.axes if shape[a] != 1]
        if not axes:
            return x
        if not prod(shape[a] for a in axes):
            return self._full(identity_of(arg.op, u.dtype), u.dtype, u.shape)
        return self.builder.reduce(arg.op, x, axes)

    def _full(self, value: Array, dtype: DType, shape: Shape) -> V:
        return self._fit(self.builder.const(value, dtype), (), shape)

    def _index(self, u: UOp) -> V:
        """Constants become a window, and data a `take` along one axis after the other."""
        of, *indices = u.src
        x, shape = self._done[of], list(_static(of.shape))
        start, stop = [0] * len(shape), list(shape)
        for axis, i in enumerate(indices):
            if i.op is Op.CONST:
                start[axis] = int(arg_of(i, ConstArg).value)
                stop[axis] = start[axis] + 1
                if not 0 <= start[axis] < shape[axis]:
                    found = f"{start[axis]} on axis {axis} of size {shape[axis]}"
                    raise undefined("INDEX.u1", found, u)
            elif not shape[axis]:
                # Nothing, or what is absent, is read.
                return self._full(np.zeros((), np_dtype(u.dtype)), u.dtype, u.shape)
        if (start, stop) != ([0] * len(shape), shape):
            x = self.builder.shrink(x, start, stop)
        for axis, i in enumerate(indices):
            if i.op is not Op.CONST:
                index = self._done[i]
                row = index if i.shape else self.builder.reshape(index, (1,))
                x = self.builder.take(x, axis, row)
        drops_axes = any(i.shape == () for i in indices)
        return self.builder.reshape(x, _static(u.shape)) if drops_axes else x


def _operands(u: UOp) -> tuple[UOp, ...]:
    """The operands that are values: no sizes, and no constants that are read as numbers."""
    if u.declaration.size_operand is not None:
        return (_viewed(u),)
    if u.op in LEAVES:
        return ()
    if u.op is Op.INDEX:
        return (u.src[0], *(i for i in u.src[1:] if i.op is not Op.CONST))
    return u.src


def _viewed(u: UOp) -> UOp:
    """The operand of a view. A RESHAPE below an EXPAND that adds leading axes is one broadcast."""
    t = u.src[0]
    if u.op is not Op.EXPAND or t.op is not Op.RESHAPE or t.shape == u.shape:
        return t
    inner = t.src[0]
    return inner if t.shape == (1,) * (len(t.shape) - len(inner.shape)) + inner.shape else t


def _static(shape: Shape) -> tuple[int, ...]:
    if not all(isinstance(n, int) for n in shape):
        raise UnsupportedError("expected sizes that are numbers")
    return tuple(shape)
