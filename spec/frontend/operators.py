"""The operators and functions of Tensor on one and two operands, one op each."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from uop.spec.conditions.labels import TENSOR_C10
from uop.spec.errors import users_line
from uop.spec.frontend.calls import composed
from uop.spec.ops.names import Op
from uop.spec.text.literal import Word

if TYPE_CHECKING:
    from uop.spec.frontend.tensor import Tensor

NAME = "unaryelementwise"
"""The name in a trace of an op that is several nodes."""
NEAR = 0.5
"""For smaller x 1 - 2/(exp(2x) + 1) would cancel."""
Method = Callable[["Operators", Any], "Tensor"]


def _operator(op: Op) -> tuple[Method, Method]:
    """The methods of an operator, for a Tensor on its left and for one on its right alone."""

    def left(self: Operators, other: Any) -> Tensor:
        return self._with(op, other)

    def right(self: Operators, other: Any) -> Tensor:
        return self._reflected(op, other)

    return left, right


class Operators(ABC):
    """The base class of Tensor with its operators, its functions of a single op, and composed ones.

    Python numbers take the dtype of the Tensor.
    """

    __slots__ = ()

    @abstractmethod
    def _with(self, op: Op, other: Any) -> Tensor:
        """op(self, other)."""

    @abstractmethod
    def _reflected(self, op: Op, other: Any) -> Tensor:
        """op(other, self)."""

    @abstractmethod
    def _unary(self, op: Op) -> Tensor:
        """op(self)."""

    __add__, __radd__ = _operator(Op.ADD)
    __sub__, __rsub__ = _operator(Op.SUB)
    __mul__, __rmul__ = _operator(Op.MUL)
    __truediv__, __rtruediv__ = _operator(Op.DIV)
    __floordiv__, __rfloordiv__ = _operator(Op.IDIV)
    __mod__, __rmod__ = _operator(Op.MOD)
    __pow__, __rpow__ = _operator(Op.POW)
    __and__, __rand__ = _operator(Op.AND)
    __or__, __ror__ = _operator(Op.OR)
    __xor__, __rxor__ = _operator(Op.XOR)
    __lshift__, __rlshift__ = _operator(Op.SHL)
    __rshift__, __rrshift__ = _operator(Op.SHR)
    __lt__ = _operator(Op.CMPLT)[0]
    __le__ = _operator(Op.CMPLE)[0]
    __gt__ = _operator(Op.CMPGT)[0]
    __ge__ = _operator(Op.CMPGE)[0]
    __eq__ = _operator(Op.CMPEQ)[0]  # type: ignore[assignment]
    __ne__ = _operator(Op.CMPNE)[0]  # type: ignore[assignment]
    __hash__ = object.__hash__

    def __neg__(self) -> Tensor:
        return self._unary(Op.NEG)

    def recip(self) -> Tensor:
        return self._unary(Op.RECIP)

    def trunc(self) -> Tensor:
        return self._unary(Op.TRUNC)

    def sqrt(self) -> Tensor:
        return self._unary(Op.SQRT)

    def sin(self) -> Tensor:
        return self._unary(Op.SIN)

    def exp2(self) -> Tensor:
        return self._unary(Op.EXP2)

    def log2(self) -> Tensor:
        return self._unary(Op.LOG2)

    @composed(NAME, kind=Word("Kind.ABS"))
    def __abs__(self) -> Tensor:
        """The maximum of x and -x."""
        return self._with(Op.MAX, -self)

    @composed(NAME, kind=Word("Kind.EXP"))
    def exp(self) -> Tensor:
        """exp2(x / ln 2): its relative error grows with x."""
        return (self * (1 / math.log(2))).exp2()

    @composed(NAME, kind=Word("Kind.LOG"))
    def log(self) -> Tensor:
        """log2(x) ln 2."""
        return self.log2() * math.log(2)

    @composed(NAME, kind=Word("Kind.RELU"))
    def relu(self) -> Tensor:
        """max(x, 0), by MAX."""
        return self._with(Op.MAX, 0)

    @composed(NAME, kind=Word("Kind.SIGMOID"))
    def sigmoid(self) -> Tensor:
        """1 / (1 + exp(-x)), from exp(-|x|), which does not overflow."""
        is_negative = self < 0
        e = is_negative.where(self, -self).exp()
        r = (e + 1).recip()
        return is_negative.where(e * r, r)

    @composed(NAME, kind=Word("Kind.TANH"))
    def tanh(self) -> Tensor:
        """The hyperbolic tangent, with a small relative error for all x: near 0 by Lambert's
        continued fraction, elsewhere by 1 - 2/(exp(2|x|) + 1).
        """
        x = cast("Tensor", self)
        if not x.dtype.is_float:
            raise TENSOR_C10.error("tanh", x.dtype.name, users_line())
        precision = x.dtype.format.precision
        # From here on, in quarters, the result rounds to 1, and a larger exp could overflow.
        most = math.ceil((precision + 2) * math.log(2) * 2) / 4
        size = abs(x)
        far = 1 - 2 / (((size > most).where(most, size) * 2).exp() + 1)
        near = (size < NEAR).where(x, 0)
        square, below = near * near, near * 0
        # Each step adds five bits or more below NEAR.
        for odd in range(2 * (precision // 5) + 3, 1, -2):
            below = square / (below + odd)
        return (size < NEAR).where(near / (below + 1), (x < 0).where(-far, far))
