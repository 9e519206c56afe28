"""Evaluate tensor graphs with every liberty that the spec leaves to a backend.

The judge must accept each of these results. It must reject them if one op is pushed outside its
accepted results.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from uop.interpreter.accept import read_by
from uop.interpreter.accepted.liberties import is_copy, is_relaxed
from uop.interpreter.accepted.result import widens
from uop.interpreter.accepted.sets import Sets, points
from uop.interpreter.accepted.tensors import AcceptedValues
from uop.interpreter.adversary import kernels
from uop.interpreter.evaluate import Output
from uop.interpreter.inputs import Inputs
from uop.interpreter.kernel.lanes import Lanes
from uop.interpreter.kernel.launch import run_program
from uop.interpreter.numeric.storage import BITS, Array
from uop.interpreter.rules.reduce import identity, neutral, terms_first
from uop.interpreter.tensor.evaluation import Arrays, Evaluation, FullOutput
from uop.interpreter.tensor.masks import made_nan
from uop.interpreter.values import Value, either
from uop.spec.args import ReduceArg, arg_of
from uop.spec.extension import in_core_ops
from uop.spec.graph import kind_of
from uop.spec.latitude import STRICT, Maximum, Profile, Reduced
from uop.spec.ops.names import Op
from uop.spec.uop import UOp


def evaluate_adversarially(
    root: UOp,
    inputs: Inputs | None = None,
    seed: int = 0,
    push: Op | None = None,
    profile: Profile = STRICT,
) -> Output:
    """Evaluate a program; move each result at random inside its op's accepted results.

    Results of the op `push` are moved one representable value outside instead, except indices in
    kernels. The liberties of a `profile` beyond the latitude of the ops are used too.
    """
    random = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        root, values = read_by(root, inputs or {}, profile)
        root = in_core_ops(root)
        if kind_of(root).calls_kernels:
            make = partial(kernels.MovedInLaunch, random=random, push=push, profile=profile)
            result: FullOutput = run_program(root, values, make=make)
        else:
            moved = _Moved(root, random, push, profile)
            result = Evaluation(root, values, moved).result()
        if isinstance(result, dict):
            return {slot: _filled(value, random) for slot, value in result.items()}
        if isinstance(result, tuple):
            return tuple(_filled(value, random) for value in result)
        return _filled(result, random)


class _Moved(Arrays):
    """The domain of arrays that moves each result at random inside its accepted results."""

    def __init__(
        self, root: UOp, random: np.random.Generator, push: Op | None, profile: Profile
    ) -> None:
        self._random, self._push, self._profile = random, push, profile
        self._accepted = AcceptedValues(root, profile)

    def in_kernel(self, body: UOp, lanes: Lanes) -> kernels.MovedInLaunch:
        return kernels.MovedInLaunch(
            body, lanes, random=self._random, push=self._push, profile=self._profile
        )

    def result(self, u: UOp, operands: list[Value]) -> Value:
        value = super().result(u, operands)
        if not operands:
            return value
        if u.op is self._push:
            data = kernels.pushed(self._sets(u, operands), value.data, u.dtype, self._random)
            return replace(value, data=data, free_nan=None)
        return kernels.quieted(u, self._moved(u, operands, value), self._profile, self._random)

    def _moved(self, u: UOp, operands: list[Value], value: Value) -> Value:
        if is_copy(u) or not widens(u, self._profile, operands, value):
            return value
        latitude = u.declaration.latitude
        is_free = is_relaxed(self._profile)
        if isinstance(latitude, Reduced) and not is_free:
            data = self._folded(u, operands[0])
        elif isinstance(latitude, Maximum) and not is_free:
            a, b = (operand.data for operand in operands)
            data = kernels.maximum_somehow(a, b, self._random, self._profile.max_nan)
        else:
            return self._member(u, operands, value)
        return replace(value, data=data, free_nan=made_nan(u, data))

    def _member(self, u: UOp, operands: list[Value], value: Value) -> Value:
        """Select values of the sets. A NaN whose bits a set demands keeps them."""
        sets = self._sets(u, operands)
        data = kernels.member(sets, value.data, self._random)
        made = made_nan(u, data)
        free = made if made is None or sets.exact is None else made & ~sets.exact
        return replace(value, data=data, free_nan=free)

    def _folded(self, u: UOp, t: Value) -> Array:
        """Fold a REDUCE in some order, without its absent elements."""
        arg = arg_of(u, ReduceArg)
        absent = np.zeros(t.data.shape, np.bool_) if t.invalid is None else t.invalid
        data = np.where(absent, neutral(arg.op, u.dtype), t.data)
        terms = terms_first(data, arg.axes)
        result = kernels.fold_somehow(arg.op, u.dtype, terms, self._random, self._profile.max_nan)
        nothing = absent.all(axis=arg.axes).reshape(-1)
        return np.where(nothing, identity(arg.op, u.dtype), result.reshape(-1)).reshape(u.shape)

    def _sets(self, u: UOp, operands: list[Value]) -> Sets:
        single = (points(v, s.dtype.is_float) for v, s in zip(operands, u.src, strict=False))
        return self._accepted.sets(u, list(single))


def _filled(value: Value, random: np.random.Generator) -> Array:
    """Fill unspecified elements with random values, and open NaNs with random bits."""
    data = np.array(value.data)
    opened = either(value.unspecified, value.invalid)
    if opened is not None:
        data = np.where(opened, _any_bits(data, random), data)
    if value.free_nan is not None:
        data = np.where(value.free_nan, _any_nan(data, random), data)
    return data


def _any_bits(like: Array, random: np.random.Generator) -> Array:
    if like.dtype == np.bool_:
        return random.random(like.shape) < 0.5
    raw = random.bytes(like.size * like.dtype.itemsize)
    return np.frombuffer(raw, like.dtype).reshape(like.shape)


def _any_nan(like: Array, random: np.random.Generator) -> Array:
    """Return NaNs of random sign and payload: random bits, with those set that make them NaNs."""
    bits = BITS[like.dtype.itemsize]
    quiet = np.full(like.shape, np.nan, like.dtype).view(bits)
    payload = _any_bits(like, random).view(bits)
    return np.asarray((payload | quiet).view(like.dtype))
