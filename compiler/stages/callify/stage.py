"""The stage callify: a program becomes FUNCTIONs without effects, and STOREs of their results.

A program without CALLs becomes one FUNCTION, in which a location after STOREs is the value that
they leave there. What a CALL reads is stored before it. A FUNCTION with the tag PRECOMPILED stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from uop.compiler.rewriting.rewrite import Fired, RuleSet, rewrite, rewrites, unobserved
from uop.compiler.stages.callify.contents import CONTENTS, TEMPORARY, Step, Steps
from uop.compiler.stages.callify.devices import is_on_several, on_single_devices
from uop.compiler.stages.stage import Stage
from uop.spec.args import GetTupleArg
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
    return _Ordered(Steps(rewrite(plain, DEVICE_VIEWS, fired), returned, fired)).sink()


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


class _Ordered:
    """Writes steps as a graph: each buffer is AFTER what must run before its access."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._buffer_of = steps.initial()
        self._version_in = {buffer: version for version, buffer in self._buffer_of.items()}
        self._last_use = {v: n for n, step in enumerate(steps.steps) for v in step.arguments}
        self._writers: dict[UOp, list[UOp]] = {}
        """The effects that have made the version in a buffer."""
        self._readers: dict[UOp, list[UOp]] = {}
        """The effects that read it."""

    def sink(self) -> UOp:
        for number, step in enumerate(self._steps.steps):
            for buffer in step.targets:
                if self._last_use.get(self._version_in.get(buffer, buffer), -1) > number:
                    self._add(self._steps.copied(buffer, self._version_in[buffer]))
            self._add(step)
        effects = (e for buffer in self._steps.outputs for e in self._writers[buffer])
        return UOp(Op.SINK, *dict.fromkeys(effects))

    def _add(self, step: Step) -> None:
        read = [self._buffer_of.get(v, v) for v in step.arguments]
        if step.body.op is not Op.TUPLE:
            arguments = [self._after(b, [*self._waits(b, b in step.targets)]) for b in read]
            call = UOp(Op.CALL, step.body, *arguments)
            effects = dict.fromkeys(step.targets, call)
        else:
            arguments = [self._after(b, self._waits(b)) for b in read]
            function = UOp(Op.FUNCTION, step.body, *arguments)
            waits = [w for b in step.targets for w in self._waits(b, is_written=True)]
            effects = {
                b: UOp(
                    Op.STORE, self._after(b, waits), UOp(Op.GETTUPLE, function, arg=GetTupleArg(k))
                )
                for k, b in enumerate(step.targets)
            }
        for buffer in read:
            self._readers.setdefault(buffer, []).extend(effects.values())
        for buffer, version in step.targets.items():
            self._writers[buffer], self._readers[buffer] = [effects[buffer]], []
            self._buffer_of[version], self._version_in[buffer] = buffer, version

    def _waits(self, buffer: UOp, is_written: bool = False) -> Sequence[UOp]:
        """The effects that run before a buffer is read, or written."""
        readers = self._readers.get(buffer, ()) if is_written else ()
        return [*self._writers.get(buffer, ()), *readers]

    def _after(self, buffer: UOp, effects: Sequence[UOp]) -> UOp:
        return UOp(Op.AFTER, buffer, *dict.fromkeys(effects)) if effects else buffer


STAGE = Stage(
    "callify", lambda u, _, fired: callify(u, fired), lambda _: CALLIFIED, lambda _: RULES
)
