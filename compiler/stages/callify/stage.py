"""The stage callify: a program becomes FUNCTIONs without effects, and STOREs of their results.

A program without CALLs becomes one FUNCTION, in which a location after STOREs is the value that
they leave there. What a CALL reads is stored before it. A FUNCTION with the tag PRECOMPILED stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from uop.compiler.rewriting.rewrite import Fired, RuleSet, rewrite, rewrites, unobserved
from uop.compiler.stages.callify.contents import CONTENTS, Step, Steps
from uop.compiler.stages.callify.devices import is_on_several, on_single_devices
from uop.compiler.stages.order import TEMPORARY, Order
from uop.compiler.stages.stage import Stage
from uop.spec.errors import UnsupportedError
from uop.spec.graph import PRECOMPILED, all_inlined, toposort, written
from uop.spec.kernel.forms import BELOW_THE_GRAPH, CALLIFIED
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import is_variable
from uop.spec.uop import UOp


def callify(root: UOp, fired: Fired = unobserved) -> UOp:
    """SINK(STORE(BUFFER_k, GETTUPLE(FUNCTION(TUPLE(v...), a...), k))...).

    A buffer is AFTER the STOREs and CALLs that must run before.
    """
    plain = inline_functions(root)
    if plain is not root:
        fired(inline_functions.__name__, root, plain)
    if is_on_several(root):
        whole, plain = plain, on_single_devices(plain)
        fired(on_single_devices.__name__, whole, plain)
    for u in toposort([plain], _outside_kernels):
        if u.op in BELOW_THE_GRAPH:
            raise UnsupportedError(f"callify: {u.op.name} in a tensor graph")
    returned = [u for u in written(plain) if u.tag != TEMPORARY]
    return _ordered(Steps(rewrite(plain, DEVICE_VIEWS, fired), returned, fired))


def inline_functions(root: UOp) -> UOp:
    """The program without FUNCTIONs, but for those that are called."""
    if all(u.op not in (Op.FUNCTION, Op.GETTUPLE) for u in root.toposort()):
        return root
    is_split = is_on_several(root)
    keep = (lambda u: False) if is_split else (lambda u: u is not root and _is_called(u))
    return all_inlined([root], keep=keep)[root]


@rewrites(Op.REPLICATED, Op.SLICE)
def decompose_view(u: UOp) -> UOp | None:
    """REPLICATED and SLICE are views on one device."""
    return u.decompose()


DEVICE_VIEWS = RuleSet(decompose_view)
RULES = (inline_functions.__name__, on_single_devices.__name__, *DEVICE_VIEWS.names, *CONTENTS)


def _is_called(function: UOp) -> bool:
    """Whether a FUNCTION stays one: it is to be precompiled, has no memory of its own, and no
    variables, since its results would depend on their numbers.
    """
    body = toposort([function.src[0]], _outside_kernels)
    has_memory = any(u.op in (Op.BUFFER, Op.STORE, Op.CALL) for u in body)
    is_plain = not has_memory and not any(map(is_variable, body))
    return function.tag == PRECOMPILED and is_plain


def _outside_kernels(u: UOp) -> Sequence[UOp]:
    return u.src[1:] if u.op is Op.CALL else u.src


def _ordered(steps: Steps) -> UOp:
    """The steps as a graph. A version that is read later is copied before it is overwritten."""
    order, buffer_of = Order(), steps.initial()
    version_in = {buffer: version for version, buffer in buffer_of.items()}
    last_use = {v: n for n, step in enumerate(steps.steps) for v in step.arguments}

    def add(step: Step) -> None:
        add_to = order.store if step.body.op is Op.TUPLE else order.call
        add_to(step.body, [buffer_of.get(v, v) for v in step.arguments], step.targets)
        for buffer, version in step.targets.items():
            buffer_of[version], version_in[buffer] = buffer, version

    for number, step in enumerate(steps.steps):
        for buffer in step.targets:
            if last_use.get(version_in.get(buffer, buffer), -1) > number:
                add(steps.copied(buffer, version_in[buffer]))
        add(step)
    return UOp(Op.SINK, *dict.fromkeys(order.writer[buffer] for buffer in steps.outputs))


STAGE = Stage(
    "callify", lambda u, _, fired: callify(u, fired), lambda _: CALLIFIED, lambda _: RULES
)
