"""The builder that an adapter writes: the walk calls it for each node of a tensor graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np

from uop.compiler.build import identity
from uop.interpreter.numeric.storage import Array, constant, np_dtype
from uop.spec.args import ConstArg, arg_of
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.registry import Shape

V = TypeVar("V")


class Builder(ABC, Generic[V]):
    """Makes values of a library. Shapes are static; no method has to broadcast or to promote.

    The type V is that of the library's values. Every method raises UnsupportedError for what the
    library lacks.
    """

    ops: frozenset[Op] = frozenset()
    """The elementwise ops that the library has, as the spec defines them."""
    composes: Mapping[Op, frozenset[Op]] = {}
    """Those of `ops` that the builder composes itself, and of which others."""
    partial: frozenset[Op] = frozenset()
    """Those of the divisions of integers that are undefined for the divisor 0 and the lowest value
    by -1.
    """

    @abstractmethod
    def param(self, slot: int, dtype: DType, shape: Shape) -> V:
        """An input."""

    @abstractmethod
    def const(self, value: Array, dtype: DType) -> V:
        """A constant of shape () or (n,); the array has its bits, the payload of a NaN included."""

    @abstractmethod
    def broadcast(self, x: V, shape: Shape) -> V:
        """Repeat x along new leading axes, and along its axes of size 1."""

    @abstractmethod
    def reshape(self, x: V, shape: Shape) -> V:
        """The same elements in row-major order."""

    @abstractmethod
    def permute(self, x: V, order: Sequence[int]) -> V:
        """Axis k of the result is axis order[k] of x."""

    @abstractmethod
    def flip(self, x: V, axes: Sequence[int]) -> V:
        """Reverse these axes."""

    @abstractmethod
    def pad(self, x: V, before: Sequence[int], after: Sequence[int]) -> V:
        """Add zeros (false) before and after each axis."""

    @abstractmethod
    def shrink(self, x: V, start: Sequence[int], stop: Sequence[int]) -> V:
        """Keep the elements from start to stop, without it, along each axis."""

    @abstractmethod
    def reduce(self, op: Op, x: V, axes: Sequence[int]) -> V:
        """Fold by ADD, MUL, MAX or MIN; the axes, none of which is empty, become 1."""

    @abstractmethod
    def stack(self, xs: Sequence[V]) -> V:
        """Join values of one shape along a new first axis."""

    @abstractmethod
    def bitcast(self, x: V, dtype: DType, shape: Shape) -> V:
        """The same bytes; the last axis scales by the ratio of the sizes."""

    @abstractmethod
    def elementwise(self, op: Op, dtype: DType, xs: Sequence[V]) -> V:
        """One of `ops` or `partial`, with a result of this dtype, on operands of one shape."""

    def take(self, x: V, axis: int, index: V) -> V:
        """The elements of x at an index of shape (k,) along an axis, which becomes k; every index
        is in range.
        """
        raise UnsupportedError("the library has no INDEX by data")


class Typed(Protocol):
    """A value that knows its dtype and shape."""

    @property
    def dtype(self) -> DType: ...

    @property
    def shape(self) -> Shape: ...


W = TypeVar("W", bound=Typed)
LN2 = 0.6931471805599453


class GraphBuilder(Builder[W]):
    """A builder for a language that has floor, ceil and log, but no TRUNC, EXP2 and LOG2."""

    @abstractmethod
    def cast(self, x: W, dtype: DType) -> W:
        """x itself where it has the dtype."""

    @abstractmethod
    def function(self, name: str, x: W) -> W:
        """`floor`, `ceil` or `log`."""

    def composed(self, op: Op, x: W) -> W:
        """TRUNC, EXP2 and LOG2; of narrow floats by way of float32."""
        if op is not Op.TRUNC and x.dtype.itemsize < 4:
            return self.cast(self.composed(op, self.cast(x, dtypes.float32)), x.dtype)
        if op is Op.EXP2:
            return self.elementwise(Op.POW, x.dtype, [self.full(2, x), x])
        if op is Op.LOG2:
            return self.elementwise(Op.DIV, x.dtype, [self.function("log", x), self.full(LN2, x)])
        below = self.elementwise(Op.CMPLT, dtypes.bool, [x, self.full(0, x)])
        up, down = self.function("ceil", x), self.function("floor", x)
        return self.elementwise(Op.WHERE, x.dtype, [below, up, down])

    def full(self, value: float, like: W) -> W:
        """A constant of the dtype and shape of another value."""
        one = self.const(np.asarray(value).astype(np_dtype(like.dtype)), like.dtype)
        return self.broadcast(one, like.shape) if like.shape else one


def identity_of(op: Op, dtype: DType) -> Array:
    """The result of a REDUCE over no elements: an array of shape ()."""
    arg = arg_of(identity(op, dtype), ConstArg)
    return constant(arg.bits, dtype)
