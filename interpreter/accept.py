"""Compute what the spec accepts for a program: the reference, and sets of values around it."""

from __future__ import annotations

import numpy as np

from uop.interpreter.accepted.kernels import accepted_of_kernels
from uop.interpreter.accepted.liberties import depends_on_others
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.accepted.tensors import accepted_of_tensors
from uop.interpreter.inputs import Inputs, bind_inputs, with_numbers
from uop.interpreter.tensor.evaluation import FullOutput
from uop.interpreter.values import Value
from uop.spec.args import PadArg, PadFill, arg_of
from uop.spec.extension import in_core_ops
from uop.spec.graph import inlined, kind_of, rebuild, slots_of
from uop.spec.latitude import STRICT, Profile
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

TRUNCATED = {Op.CDIV: Op.IDIV, Op.CMOD: Op.MOD}
"""The replacements of CDIV and CMOD under a profile that rounds every division toward zero."""


def accept(
    root: UOp, inputs: Inputs | None = None, profile: Profile = STRICT
) -> tuple[Accepted, ...]:
    """Return the accepted results of each output of a program, in the order of `evaluate`.

    The outputs of a SINK are the stored slots in the order of their numbers. Raises UndefinedError
    for a program without meaning on the inputs, even if only some of its accepted values lead
    there, and UnsupportedError for a program whose sets this version cannot compute. The knob
    `int_div_traps` changes no set: it only allows that there is no result.
    """
    root, values = read_by(root, inputs or {}, profile)
    root = in_core_ops(root)
    if kind_of(root).calls_kernels:
        return accepted_of_kernels(root, values, profile)
    with np.errstate(all="ignore"):
        return accepted_of_tensors(root, values, profile)


def reference(root: UOp, result: FullOutput) -> tuple[Accepted, ...]:
    """Return the reference of each output in the order of `accept`, without the sets around it.

    `accept` under STRICT returns the same reference.
    """
    if isinstance(result, dict):
        buffers = slots_of(root)
        return tuple(Accepted(buffers[slot].dtype, result[slot]) for slot in sorted(result))
    if isinstance(result, tuple):
        return tuple(Accepted(u.dtype, v) for u, v in zip(root.src, result, strict=True))
    return (Accepted(root.dtype, result),)


def read_by(root: UOp, inputs: Inputs, profile: Profile) -> tuple[UOp, dict[UOp, Value]]:
    """Return a program as a profile reads it, and its inputs.

    PADs and divisions follow the profile. Calls are inlined if the accepted results of a node
    depend on other nodes.
    """
    root = _as_declared(root, profile)
    root, inputs = with_numbers(root, inputs)
    values = bind_inputs(root, inputs)
    # Only then: an argument that no body reads is an input too.
    if depends_on_others(profile) and any(u.op is Op.FUNCTION for u in root.toposort()):
        root = inlined(root)
    return root, values


def _as_declared(root: UOp, profile: Profile) -> UOp:
    """Fill PADs and choose the kind of divisions as a profile says.

    The decomposition of CDIV corrects an IDIV that rounds toward minus infinity.
    """
    fills, truncates = profile.pad_fill == "zero", profile.int_div == "trunc"
    if not (fills or truncates):
        return root

    def declared(u: UOp, src: list[UOp]) -> UOp:
        if fills and u.op is Op.PAD and arg_of(u, PadArg).fill is PadFill.INVALID:
            return UOp(u.op, *src, arg=PadArg(PadFill.ZERO), tag=u.tag)
        if u.op in TRUNCATED and profile.truncates(u.dtype):
            return UOp(TRUNCATED[u.op], *src, tag=u.tag)
        return u.with_src(src)

    return rebuild(root, declared)
