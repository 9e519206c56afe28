"""Writes a tensor program as a script of tinygrad's Tensor API, and runs it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from uop.conformance.backends.tinygrad_graph import REDUCES
from uop.conformance.backends.tinygrad_library import TARGETS
from uop.conformance.bug_report.failing import FailingCase
from uop.conformance.finding_runs import runs
from uop.conformance.judging.storage import element_sets
from uop.conformance.protocol.untrusted import in_one_line
from uop.conformance.suite.own_cases import promised
from uop.spec.args import ConstArg, DTypeArg, FlipArg, LoadArg, PermuteArg, ReduceArg, arg_of
from uop.spec.case import ElementSet, FileCase
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.graph import kind_of, slot_of
from uop.spec.ops.names import Op
from uop.spec.properties.shape import index_values
from uop.spec.text.array import Array
from uop.spec.uop import UOp

MOST_LINES = 20
WIDTH = 90
"""A node that is read once stands in the expression that reads it, up to this width."""
MOST_DATA = 64
"""The most elements of an input."""
AS_LIST = (dtypes.float32, dtypes.float64)
"""Floats that a list of Python numbers gives without a cast."""


@dataclass(frozen=True, slots=True)
class Script:
    """A script that ends with 1 while the failure exists, and what came of it here."""

    text: str
    environment: str
    shown: str


def script_of(failing: FailingCase, target: str) -> Script | str:
    """The script of a failing case, or the reason why there is none.

    It runs here if the case did, since Tensor may write another graph than the case has.
    """
    if target not in TARGETS:
        return f"no device {target}"
    try:
        text = script_text(failing)
    except UnsupportedError as error:
        return str(error)
    environment = TARGETS[target] if target == "X86" else target
    if not failing.is_run_here:
        return Script(text, environment, "not run here")
    try:
        with TemporaryDirectory(prefix="uop-", ignore_cleanup_errors=True) as folder:
            path = Path(folder) / "script.py"
            path.write_text(text, "utf-8")
            run = runs(target, [path])[path.stem]
    except UnsupportedError as error:
        return Script(text, environment, f"not run here ({in_one_line(str(error))})")
    shown = in_one_line(run.output)
    if run.wrong is False:
        return f"its Tensor writes another graph, which gives the right value ({shown})"
    if run.wrong is None and failing.failure.values:
        return f"the one by its Tensor ends otherwise ({shown})"
    return Script(text, environment, f"which prints `{shown}` here")


def script_text(failing: FailingCase) -> str:
    """The script. UnsupportedError for a program that Tensor cannot express."""
    case, root = failing.case, failing.case.root
    if root is None:
        raise UnsupportedError("the program is invalid, and tinygrad's Tensor builds valid ones")
    if kind_of(root).calls_kernels:
        raise UnsupportedError("the program calls kernels, which Tensor has no words for")
    wanted = root.src[failing.output] if root.op is Op.TUPLE else root
    writer = _Writer(case, wanted)
    lines = [
        "from tinygrad import Device, Tensor, dtypes",
        "",
        *writer.lines,
        *_ending(failing, wanted, writer.text[wanted]),
    ]
    if len(lines) > MOST_LINES:
        raise UnsupportedError(f"it would have {len(lines)} lines")
    return "\n".join(lines) + "\n"


class _Writer:
    """The lines that compute a program, and the expression of each node."""

    def __init__(self, case: FileCase, root: UOp) -> None:
        self.case, self.lines = case, list[str]()
        self.text: dict[UOp, str] = {}
        readers = Counter(s for u in root.toposort() for s in u.src)
        for u in root.toposort():
            if u.dtype is dtypes.index:
                continue
            text = self._expression(u)
            is_long = len(text) > WIDTH or readers[u] > 1
            self.text[u] = self._named(text) if is_long and not text.isidentifier() else text

    def _named(self, text: str) -> str:
        name = f"t{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def _expression(self, u: UOp) -> str:
        if u.op is Op.PARAM:
            return self._input(u)
        if u.op is Op.CONST:
            value = arg_of(u, ConstArg)
            return f"Tensor({_number(value.bits, u.dtype)}, dtype=dtypes.{u.dtype.name})"
        if u.op in INFIX:
            return f"({f' {INFIX[u.op]} '.join(self.text[s] for s in u.src)})"
        if u.op in METHODS:
            first, *rest = (self.text[s] for s in u.src)
            return f"{first}.{METHODS[u.op]}({', '.join(rest)})"
        rule = RULES.get(u.op)
        if rule is None:
            raise UnsupportedError(f"tinygrad's Tensor has no {u.op.name}")
        return rule(u, [self.text.get(s, "") for s in u.src])

    def _input(self, u: UOp) -> str:
        data = self.case.inputs.get(slot_of(u))
        if data is None:
            raise UnsupportedError("the file has no data for an input")
        name = f"x{slot_of(u)}"
        shaped = "" if len(u.shape) == 1 else f".reshape({u.shape})"
        self.lines.append(f"{name} = Tensor({_data(data)}){shaped}.realize()")
        return name


def _data(data: Array) -> str:
    """The data of an input: numbers, or the bytes of floats that a list would convert."""
    if len(data.bits) > MOST_DATA:
        raise UnsupportedError(f"an input has {len(data.bits)} elements")
    name = f"dtype=dtypes.{data.dtype.name}"
    is_exact = not data.dtype.is_float or data.dtype in AS_LIST
    if not is_exact or any(_is_nan(b, data.dtype) for b in data.bits):
        return f'bytes.fromhex("{data.data.hex()}"), {name}'
    return f"[{', '.join(_number(b, data.dtype) for b in data.bits)}], {name}"


def _is_nan(bits: int, dtype: DType) -> bool:
    return dtype.is_float and dtype.format.is_nan(bits)


def _number(bits: int, dtype: DType) -> str:
    """A value in Python."""
    if _is_nan(bits, dtype) and bits != dtype.format.nan_bits:
        raise UnsupportedError("tinygrad keeps no payload of a constant NaN")
    value = dtype.decode(bits)
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)


def _flip(u: UOp, src: Sequence[str]) -> str:
    axes = tuple(k for k, flag in enumerate(arg_of(u, FlipArg).flags) if flag)
    return f"{src[0]}.flip({axes})"


def _window(u: UOp, src: Sequence[str]) -> str:
    offsets, old = index_values(u.src[1]), u.src[0].shape
    if u.op is Op.SHRINK:
        ends = [(at, at + n) for at, n in zip(offsets, u.shape, strict=True)]
        return f"{src[0]}.shrink({tuple(ends)})"
    sides = [(at, n - at - k) for at, n, k in zip(offsets, u.shape, old, strict=True)]
    return f"{src[0]}.pad({tuple(sides)})"


def _index(u: UOp, src: Sequence[str]) -> str:
    if any(i.op is not Op.CONST for i in u.src[1:]):
        raise UnsupportedError("tinygrad's Tensor has no INDEX by data that becomes one node")
    numbers = ", ".join(str(int(arg_of(i, ConstArg).value)) for i in u.src[1:])
    return f"{src[0]}[{numbers}]" if numbers else src[0]


def _reduce(u: UOp, src: Sequence[str]) -> str:
    arg = arg_of(u, ReduceArg)
    if arg.op not in REDUCES or len(u.src) > 1:
        raise UnsupportedError(f"tinygrad's Tensor has no REDUCE by {arg.op.name}")
    keep = ", keepdim=True" if len(u.shape) == len(u.src[0].shape) else ""
    if arg.op is Op.MAX:
        return f"{src[0]}.max({arg.axes}{keep})"
    method = "sum" if arg.op is Op.ADD else "prod"
    return f"{src[0]}.{method}({arg.axes}{keep}, dtype=dtypes.{u.dtype.name})"


def _stack(u: UOp, src: Sequence[str]) -> str:
    if not src:
        raise UnsupportedError("tinygrad has no empty STACK")
    return f"Tensor.stack({', '.join(src)})"


def _load(u: UOp, src: Sequence[str]) -> str:
    if arg_of(u, LoadArg).device is not None:
        raise UnsupportedError("a program for several devices")
    copy = f"{src[0]}.contiguous()"
    return copy if len(src) < 3 else f"{src[2]}.where({copy}, {src[1]})"


def _converted(method: str) -> Callable[[UOp, Sequence[str]], str]:
    return lambda u, src: f"{src[0]}.{method}(dtypes.{arg_of(u, DTypeArg).dtype.name})"


def _shaped(method: str) -> Callable[[UOp, Sequence[str]], str]:
    return lambda u, src: f"{src[0]}.{method}({u.shape})"


def _ending(failing: FailingCase, wanted: UOp, text: str) -> list[str]:
    """The lines that compute the result, print it beside what is right, and compare."""
    computed = f"got = {text}.clone(Device.DEFAULT).realize()"
    if failing.place is None:
        return [computed, "print(got.tolist())"]
    flat = 0
    for i, n in zip(failing.place, wanted.shape, strict=True):
        flat = flat * n + i
    read = f".bitcast(dtypes.uint{wanted.dtype.bits})" if wanted.dtype.is_float else ""
    sets = element_sets(promised(failing.as_judged, failing.case)[failing.output])
    right, condition = _accepted(sets[flat], wanted.dtype)
    shown = "hex(got)" if wanted.dtype.is_float else "got"
    return [
        computed,
        f"got = got{read}.flatten().tolist()[{flat}]",
        f'print({shown}, "right: {right}")',
        f"raise SystemExit(not ({condition}))",
    ]


def _accepted(accepted: ElementSet, dtype: DType) -> tuple[str, str]:
    """The accepted set as text, and as a condition on `got`: a number, of a float its bits."""
    of = _of_floats if dtype.is_float else _of_numbers
    parts = [of(*ends, dtype) for ends in accepted.intervals]
    texts, conditions = [text for text, _ in parts], [condition for _, condition in parts]
    for bits in accepted.nan_bits:
        texts.append(f"{bits:#x} (a NaN)")
        conditions.append(f"got == {bits:#x}")
    if accepted.nan:
        sign = dtype.format.sign_bit
        texts.append("NaN")
        infinity = dtype.format.exponent_mask if dtype.format.has_inf else dtype.format.max_bits
        conditions.append(f"got & {sign - 1:#x} > {infinity:#x}")
    return " or ".join(texts), " or ".join(conditions)


def _of_numbers(low: int, high: int, dtype: DType) -> tuple[str, str]:
    """An interval of numbers as text, and as a condition."""
    ends = dtype.decode(low), dtype.decode(high)
    if low == high:
        return str(ends[0]), f"got == {ends[0]}"
    return f"{ends[0]} to {ends[1]}", f"{ends[0]} <= got <= {ends[1]}"


def _of_floats(low: int, high: int, dtype: DType) -> tuple[str, str]:
    """An interval of floats as text, and as a condition on their bits."""
    sign = dtype.format.sign_bit
    text = " to ".join(f"{b:#x} ({dtype.decode(b)})" for b in dict.fromkeys((low, high)))
    if low == high:
        return text, f"got == {low:#x}"
    if low & sign and high & sign:
        return text, f"{high:#x} <= got <= {low:#x}"
    if low & sign:
        return text, f"got <= {high:#x} or {sign:#x} <= got <= {low:#x}"
    return text, f"{low:#x} <= got <= {high:#x}"


INFIX: dict[Op, str] = {
    **{Op.ADD: "+", Op.SUB: "-", Op.MUL: "*", Op.DIV: "/", Op.IDIV: "//", Op.MOD: "%"},
    **{Op.AND: "&", Op.OR: "|", Op.XOR: "^", Op.CMPLT: "<", Op.CMPGT: ">", Op.CMPLE: "<="},
    **{Op.CMPGE: ">=", Op.CMPEQ: "==", Op.CMPNE: "!="},
}
METHODS: dict[Op, str] = {
    **{Op.EXP2: "exp2", Op.LOG2: "log2", Op.SIN: "sin", Op.SQRT: "sqrt", Op.POW: "pow"},
    **{Op.RECIP: "reciprocal", Op.TRUNC: "trunc", Op.MAX: "maximum", Op.WHERE: "where"},
    **{Op.NEG: "neg", Op.NOT: "logical_not", Op.CMOD: "fmod", Op.CONTIGUOUS: "contiguous"},
    Op.DETACH: "detach",
}
"""The ops that an operator or a method of Tensor writes as that node, on equal dtypes."""
RULES: dict[Op, Callable[[UOp, Sequence[str]], str]] = {
    Op.CDIV: lambda u, src: f'{src[0]}.div({src[1]}, rounding_mode="trunc")',
    Op.MULACC: lambda u, src: f"({src[0]} * {src[1]} + {src[2]})",
    Op.CAST: _converted("cast"),
    Op.BITCAST: _converted("bitcast"),
    Op.RESHAPE: _shaped("reshape"),
    Op.EXPAND: _shaped("expand"),
    Op.PERMUTE: lambda u, src: f"{src[0]}.permute({arg_of(u, PermuteArg).order})",
    Op.FLIP: _flip,
    Op.PAD: _window,
    Op.SHRINK: _window,
    Op.INDEX: _index,
    Op.REDUCE: _reduce,
    Op.STACK: _stack,
    Op.LOAD: _load,
}
"""The ops with other operands or an arg."""
