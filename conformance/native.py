"""What a program of a file holds that a device would run as it stands; the error that names it."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator

from uop.conformance.backends import MUTANT, names
from uop.interpreter.rules.codegen import is_registered
from uop.spec.args import CustomArg, InsArg, SourceArg, arg_of
from uop.spec.case import FileCase
from uop.spec.errors import NativeError, UopError
from uop.spec.graph import kernel_calls
from uop.spec.kernel.forms import LINEARIZED, verify
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

MOST = 3
"""The most things that an error names."""


def check_native(cases: Iterable[FileCase], *, native: bool) -> None:
    """NativeError where a program of these holds native code, unless `native` allows it.

    A case to be rejected is read and never run.
    """
    for case in () if native else cases:
        found = {} if case.root is None else dict(native_in(case.root))
        if found:
            said = list(dict.fromkeys(found.values()))
            more = f" and {len(said) - MOST} more" if len(said) > MOST else ""
            name = f", case {case.id}" if case.id else ""
            raise NativeError(
                f"{case.place_of(found)}{name}: expected a program without native code, or "
                f"--native; found {', '.join(said[:MOST])}{more}"
            )


def check_backend(path: str, backend: str, *, native: bool) -> None:
    """NativeError for the backend of a report that names code to run, unless `native` allows it."""
    first, colon, _ = backend.partition(":")
    if colon and first not in names() and not backend.startswith(MUTANT) and not native:
        raise NativeError(
            f"{path}: expected a backend that `uop backends` lists, or BACKEND behind the report, "
            f"or --native; found {backend!r}"
        )


def is_native(root: UOp) -> bool:
    """Whether a program holds what a device would run as it stands, and that is not ours."""
    return any(True for _ in native_in(root))


def native_in(root: UOp) -> Iterator[tuple[UOp, str]]:
    """Each node with native code, and what that is."""
    order = root.toposort()
    # Rendering needs the compiler, which is slow to import.
    ours = _rendered(root) if any(u.op is Op.SOURCE for u in order) else frozenset()
    for u in order:
        if u.op is Op.PROGRAM and (size := u.src[2].shape[0]):
            yield u, f"a BINARY of {size} bytes"
        elif u.op is Op.SOURCE and u not in ours:
            yield u, "a SOURCE that uop does not render of its LINEAR"
        elif u.op is Op.CUSTOM and not is_registered(u):
            yield u, f"the CUSTOM {reprlib.repr(arg_of(u, CustomArg).fmt)}, which is not registered"
        elif u.op is Op.INS and not is_registered(u):
            yield u, f"the INS {reprlib.repr(arg_of(u, InsArg).name)}, which is not registered"


def _rendered(root: UOp) -> frozenset[UOp]:
    """The SOURCEs of a program that are what uop renders of their LINEARs, for any target.

    One that several PROGRAMs share must be that of each.
    """
    from uop.compiler.stages.render.stage import kernel_names

    kernels = kernel_names(root)
    called = {call.src[0] for call in kernel_calls(root)}
    ours: set[UOp] = set()
    others: set[UOp] = set()
    for u in root.toposort():
        if u.op is Op.PROGRAM:
            is_ours = u in called and _is_rendered(u, kernels[u.src[0]])
            (ours if is_ours else others).add(u.src[1])
    return frozenset(ours - others)


def _is_rendered(program: UOp, name: str) -> bool:
    """Whether the SOURCE of a PROGRAM is what uop renders of its LINEAR."""
    from uop.compiler.pipeline import TARGETS
    from uop.compiler.stages.entry.stage import alone
    from uop.compiler.targets.target import Target

    linear, source, _ = program.src
    text = arg_of(source, SourceArg).text

    def is_of(target: Target) -> bool:
        try:
            return target.source([target.kernel(linear, name)]) == text
        except (UopError, LookupError, ValueError):
            # A list by hand may lack what `render` relies on.
            return False

    try:
        verify(alone(linear), LINEARIZED)
    except UopError:
        return False
    return any(map(is_of, TARGETS.values()))
