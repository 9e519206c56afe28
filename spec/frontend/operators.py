"""The binary operators of Tensor, one op each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from uop.spec.ops.names import Op

if TYPE_CHECKING:
    from uop.spec.frontend.tensor import Tensor


class Operators(ABC):
    """The base class of Tensor with its operators; Python numbers take the dtype of the Tensor."""

    __slots__ = ()

    @abstractmethod
    def _with(self, op: Op, other: Any) -> Tensor:
        """op(self, other)."""

    @abstractmethod
    def _behind(self, op: Op, other: Any) -> Tensor:
        """op(other, self)."""

    def __add__(self, other: Any) -> Tensor:
        return self._with(Op.ADD, other)

    def __radd__(self, other: Any) -> Tensor:
        return self._behind(Op.ADD, other)

    def __sub__(self, other: Any) -> Tensor:
        return self._with(Op.SUB, other)

    def __rsub__(self, other: Any) -> Tensor:
        return self._behind(Op.SUB, other)

    def __mul__(self, other: Any) -> Tensor:
        return self._with(Op.MUL, other)

    def __rmul__(self, other: Any) -> Tensor:
        return self._behind(Op.MUL, other)

    def __truediv__(self, other: Any) -> Tensor:
        return self._with(Op.DIV, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return self._behind(Op.DIV, other)

    def __floordiv__(self, other: Any) -> Tensor:
        return self._with(Op.IDIV, other)

    def __rfloordiv__(self, other: Any) -> Tensor:
        return self._behind(Op.IDIV, other)

    def __mod__(self, other: Any) -> Tensor:
        return self._with(Op.MOD, other)

    def __rmod__(self, other: Any) -> Tensor:
        return self._behind(Op.MOD, other)

    def __pow__(self, other: Any) -> Tensor:
        return self._with(Op.POW, other)

    def __rpow__(self, other: Any) -> Tensor:
        return self._behind(Op.POW, other)

    def __and__(self, other: Any) -> Tensor:
        return self._with(Op.AND, other)

    def __rand__(self, other: Any) -> Tensor:
        return self._behind(Op.AND, other)

    def __or__(self, other: Any) -> Tensor:
        return self._with(Op.OR, other)

    def __ror__(self, other: Any) -> Tensor:
        return self._behind(Op.OR, other)

    def __xor__(self, other: Any) -> Tensor:
        return self._with(Op.XOR, other)

    def __rxor__(self, other: Any) -> Tensor:
        return self._behind(Op.XOR, other)

    def __lshift__(self, other: Any) -> Tensor:
        return self._with(Op.SHL, other)

    def __rlshift__(self, other: Any) -> Tensor:
        return self._behind(Op.SHL, other)

    def __rshift__(self, other: Any) -> Tensor:
        return self._with(Op.SHR, other)

    def __rrshift__(self, other: Any) -> Tensor:
        return self._behind(Op.SHR, other)

    def __lt__(self, other: Any) -> Tensor:
        return self._with(Op.CMPLT, other)

    def __le__(self, other: Any) -> Tensor:
        return self._with(Op.CMPLE, other)

    def __gt__(self, other: Any) -> Tensor:
        return self._with(Op.CMPGT, other)

    def __ge__(self, other: Any) -> Tensor:
        return self._with(Op.CMPGE, other)

    def __eq__(self, other: Any) -> Tensor:  # type: ignore[override]
        return self._with(Op.CMPEQ, other)

    def __ne__(self, other: Any) -> Tensor:  # type: ignore[override]
        return self._with(Op.CMPNE, other)

    __hash__ = object.__hash__
