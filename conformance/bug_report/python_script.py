"""Writes the program of a file as a script of uop's Python API, which prints what it gives."""

from __future__ import annotations

from uop.compiler.pipeline import TARGETS
from uop.conformance.backends import INTERPRETER
from uop.conformance.backends.interpreter import is_sharded
from uop.conformance.checks import OptionError
from uop.conformance.protocol.untrusted import in_one_line
from uop.conformance.suite.levels.written import inputs_of
from uop.interpreter.numeric.storage import BITS, Array, to_bits
from uop.spec.case import FileCase
from uop.spec.errors import UnsupportedError

SCRIPT = '''\
# {title}
import ml_dtypes  # noqa: F401 - dtypes that numpy lacks
import numpy as np

from uop import {function}, parse
from uop.conformance.judging.compare import element_text
from uop.interpreter.accept import accept
from uop.spec.text.profile_text import parse_profile

root = parse("""
{text}""")
inputs = {{{inputs}}}
found = {call}
outputs = [found[slot] for slot in sorted(found)] if isinstance(found, dict) else found
outputs = outputs if isinstance(outputs, list | tuple) else [outputs]
profile = parse_profile("{profile}")
for number, (output, right) in enumerate(zip(outputs, accept(root, inputs, profile), strict=True)):
    for k, is_right in enumerate(right.contains(output).reshape(-1)):
        got = element_text(right.dtype, output, k)
        print("ok   " if is_right else "WRONG", f"output {{number}} element {{k}}: {{got}},",
              f"accepted {{right.describe(k)}}")
'''


def python_script(case: FileCase, backend: str) -> str:
    """The script of a case, which runs it by the interpreter or a target of the compiler.

    OptionError for another backend, UnsupportedError for a program that cannot run so.
    """
    if backend != INTERPRETER and backend not in TARGETS:
        expected = ", ".join((INTERPRETER, *TARGETS))
        raise OptionError(f"--emit-python: expected one of {expected}; found {backend}")
    if case.root is None:
        raise UnsupportedError("--emit-python: a program that must be rejected does not run")
    if is_sharded(case.root):
        raise UnsupportedError("--emit-python: a program on several devices needs `uop replay`")
    is_compiled = backend != INTERPRETER
    lines = (f"    {slot}: {_array(a)}," for slot, a in sorted(inputs_of(case).items()))
    return SCRIPT.format(
        title=": ".join(filter(None, (case.id or case.path, in_one_line(case.comment)))),
        function="compile" if is_compiled else "evaluate",
        text=case.text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"'),
        inputs="\n".join(["", *lines, ""]) if case.inputs else "",
        call=f'compile(root, target="{backend}").run(inputs)'
        if is_compiled
        else "evaluate(root, inputs)",
        profile=case.profile,
    )


def _array(a: Array) -> str:
    """An array by the bits of its elements, so that -0 and payloads of NaNs stay."""
    bits = ", ".join(f"{n:#x}" for n in to_bits(a).reshape(-1).tolist())
    unsigned = BITS[a.dtype.itemsize]
    return f'np.array([{bits}], np.{unsigned}).view("{a.dtype}").reshape({a.shape})'
