"""Labelled conditions on inputs, args, Tensors and text: all except the constraints of the ops."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from uop.spec.errors import InvalidError, LackingError, Place, users_line
from uop.spec.ops.names import Op

if TYPE_CHECKING:
    from uop.spec.uop import UOp


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition: its label, which errors print, and its title, which states what must hold.

    Where the title names dtypes it is a function, because another package may add some.
    """

    label: str
    stated: str | Callable[[], str]

    @property
    def title(self) -> str:
        return self.stated if isinstance(self.stated, str) else self.stated()

    def error(self, node: str = "", found: str = "", where: str | Place = "") -> InvalidError:
        """The error for a broken condition."""
        return InvalidError(self.label, self.title, node, found, where)

    def lacking(self, node: str, found: str) -> LackingError:
        """The error for a condition of this version that is not one of the language."""
        return LackingError(self.label, self.title, node, found, users_line())


_TITLES = {
    "ARG.c1": "a field of an arg has its type",
    "CONST.number": "a constant is a number, of a DType",
    "EVALUATOR.name": "a backend of Tensors has the name of an evaluator",
    "INPUT.c1": "a slot belongs to one PARAM or BUFFER",
    "INPUT.c2": "every input has a slot of the program",
    "INPUT.c3": "every PARAM has an input",
    "INPUT.c4": "an input has the shape and dtype of its slot",
    "INPUT.c5": "a variable lies in its range",
    "INPUT.c6": "inputs are a mapping from slots to arrays",
    "NODE.c1": "the op of a node is an Op",
    "NODE.c2": "the operands of a node are UOps",
    "NODE.c3": "the tag of a node is text, or None",
    "NODE.c4": "a substitution is a mapping from UOps to UOps",
    "NODE.c5": "a program is given by its root, a UOp",
    "SHAPE.c1": "a shape is a sequence of integers",
    "SIZES.c1": "the sizes in a called body are numbers, or come from arguments that are sizes",
    "SIZES.c2": "the sizes are numbers",
    "TEXT.c1": "the text of a program or of a trace is a str",
    "TENSOR.c1": "a Python number is a value of the dtype it is used with",
    "TENSOR.c2": "data is a number, an array, or nested lists of one length at each depth",
    "TENSOR.c3": "an index has at most one key for each axis, and integers inside it",
    "TENSOR.c4": "a Tensor of one element is a Python number; an index is integer",
    "TENSOR.c5": "the dtype of a Tensor is a DType",
    "TENSOR.c6": "a function that is captured takes no value of its inputs",
    "TENSOR.c7": "what comes by DLPack has `__dlpack__` and `__dlpack_device__`, and numbers in "
    "the memory of the CPU",
    "TENSOR.c8": "what goes out by DLPack has a dtype that DLPack has in numpy",
    "TENSOR.c9": "@ has axes on both sides, the last as long as the last but one of the right",
    "TENSOR.c10": "tanh is a function of floats",
    "TENSOR.c11": "what has a value has elements: it is no effect and no function",
    "GRADIENT.c1": "a gradient is that of a float of shape ()",
    "GRADIENT.c2": "memory that a gradient flows through is written by STOREs alone, through "
    "PERMUTE, FLIP, RESHAPE, SHRINK, PAD and INDEX",
    "FUNCTION.result": "a function returns a Tensor, or Tensors in a list, tuple or dict",
    "TRACE.outputs": "a trace is that of one or more Tensors",
    "PROGRAM.binary": "the BINARY of a compiled PROGRAM is empty, or whole machine code of its "
    "SOURCE",
    "callify.target": "a STORE in a tensor graph goes through no EXPAND, which has an element "
    "several times",
}
CONDITIONS = {label: Condition(label, title) for label, title in _TITLES.items()}
"""The conditions of this file by label. An edition holds those of its words."""


def invalid(label: str, node: str, found: str, *nodes: UOp) -> InvalidError:
    """The error for a broken condition, at the line that asked for the value; `nodes` take part."""
    condition = CONDITIONS[label]
    return InvalidError(condition.label, condition.title, node, found, users_line(), nodes)


def clash(slot: int, first: UOp, second: UOp) -> InvalidError:
    """The error INPUT.c1: two nodes have one slot. PARAM and BUFFER share a namespace (D-055)."""
    return invalid("INPUT.c1", f"slot {slot}", f"{_spelled(first)} and {_spelled(second)}", second)


def check_slots(slots: Mapping[int, UOp], inputs: Collection[int]) -> None:
    """InvalidError for an input without a slot and for a PARAM without input.

    A BUFFER may start without contents.
    """
    for slot in inputs:
        if slot not in slots:
            known = ", ".join(map(str, sorted(slots))) or "none"
            raise invalid("INPUT.c2", f"slot {slot}", f"slots {known}")
    for slot, u in slots.items():
        if slot not in inputs and u.op is Op.PARAM:
            raise invalid("INPUT.c3", f"slot {slot}: {_spelled(u)}", "none", u)


def misfit(slot: int, u: UOp, found: str) -> InvalidError:
    """The error INPUT.c4: an input of another shape or dtype; `found` describes the input."""
    return invalid("INPUT.c4", f"slot {slot}: {_spelled(u)}", found, u)


def _spelled(u: UOp) -> str:
    return f"{u.op.name} {u.dtype.name}{list(u.shape)}"
