"""Prints the lines of the text form; `program` joins them to programs and parses them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from uop.spec.args import AddrSpace, Arg, Device
from uop.spec.dtype import DType, dtypes
from uop.spec.graph import toposort
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import spelled
from uop.spec.text.codec import arg_text
from uop.spec.text.literal import Quoted, print_literal

if TYPE_CHECKING:
    from uop.spec.uop import UOp

CACHED_TEXTS = 2048
"""The size of the cache of derived parts."""


class Printer:
    """Numbers the nodes of a program and prints their lines."""

    def __init__(self) -> None:
        self._in_place: dict[UOp, str | None] = {}
        self._number: dict[UOp, int] = {}

    def operands(self, src: Sequence[UOp]) -> list[UOp]:
        """The operands that need a line of their own."""
        for s in src:
            if s not in self._in_place:
                self._in_place[s] = in_place(s)
        return [s for s in src if self._in_place[s] is None]

    def operand(self, u: UOp) -> str:
        return self._in_place[u] or f"%{self._number[u]}"

    def print(self, roots: list[UOp]) -> list[str]:
        lines: list[str] = []
        for u in toposort(roots, lambda u: self.operands(u.src)):
            self._number[u] = len(lines)
            written = print_node(u.op.name, [self.operand(s) for s in u.src], u.arg)
            lines.append(f"%{len(lines)} = {written} {derived(u)}{print_tag(u.tag)}")
        return lines


def print_node(name: str, src: list[str], arg: Arg | None) -> str:
    """The part of a line before the colon: op, operands and arg."""
    return (f"{name} {', '.join(src)}" if src else name) + arg_text(arg)


def in_place(u: UOp) -> str | None:
    """`3` for an index constant, `[2,3]` for a STACK of them; None for a node with its own line."""
    if u.tag is not None or u.dtype is not dtypes.index:
        return None
    if u.op is Op.CONST:
        return str(u.arg.value)  # type: ignore[union-attr]
    if u.op is not Op.STACK or not all(s.op is Op.CONST and s.tag is None for s in u.src):
        return None
    return "[" + ",".join(str(s.arg.value) for s in u.src) + "]"  # type: ignore[union-attr]


def derived(u: UOp) -> str:
    return _derived(u.dtype, u.shape, u.device, u.addrspace)


@lru_cache(maxsize=CACHED_TEXTS)
def _derived(
    dtype: DType, sizes: tuple[int | UOp, ...], device: Device, addrspace: AddrSpace | None
) -> str:
    text = f": {dtype.name}[{','.join(str(spelled(size)) for size in sizes)}]"
    if device is not None:
        names = tuple(map(Quoted, device)) if isinstance(device, tuple) else device
        text += f" @{print_literal(names)}"
    return text if addrspace is None else f"{text} &{addrspace.name}"


def print_tag(tag: str | None) -> str:
    return "" if tag is None else f" !{print_literal(Quoted(tag))}"
