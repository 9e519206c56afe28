"""The operators and functions of Tensor on one and two operands, one op each."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, cast

from uop.spec.conditions.labels import TENSOR_C10
from uop.spec.errors import users_line
from uop.spec.frontend.calls import composed
from uop.spec.ops.names import Op
from uop.spec.text.literal import Word

if TYPE_CHECKING:
    from uop.spec.frontend.tensor import Tensor

from abc import ABC
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uop.spec.frontend.tensor import Tensor


class Operators(ABC):
    """The base class of Tensor with its operators; Python numbers take the dtype of the Tensor."""

    __slots__ = ()

    @abstractmethod
    def _with(self, op: Op, other: Any) -> Tensor:
        """op(self, other)."""

    @abstractmethod
    def _reflected(self, op: Op, other: Any) -> Tensor:
        """op(other, self)."""

    def __add__(self, other: Any) -> Tensor:
        return self._with(Op.ADD, other)

    def __radd__(self, other: Any) -> Tensor:
        return self._reflected(Op.ADD, other)

    def __sub__(self, other: Any) -> Tensor:
        return self._with(Op.SUB, other)

    def __rsub__(self, other: Any) -> Tensor:
        return self._reflected(Op.SUB, other)

    def __mul__(self, other: Any) -> Tensor:
        return self._with(Op.MUL, other)

    def __rmul__(self, other: Any) -> Tensor:
        return self._reflected(Op.MUL, other)

    def __truediv__(self, other: Any) -> Tensor:
        return self._with(Op.DIV, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return self._reflected(Op.DIV, other)

    def __floordiv__(self, other: Any) -> Tensor:
        return self._with(Op.IDIV, other)

    def __rfloordiv__(self, other: Any) -> Tensor:
        return self._reflected(Op.IDIV, other)

    def __mod__(self, other: Any) -> Tensor:
        return self._with(Op.MOD, other)

    def __rmod__(self, other: Any) -> Tensor:
        return self._reflected(Op.MOD, other)

    def __pow__(self, other: Any) -> Tensor:
        return self._with(Op.POW, other)

    def __rpow__(self, other: Any) -> Tensor:
        return self._reflected(Op.POW, other)

    def __and__(self, other: Any) -> Tensor:
        return self._with(Op.AND, other)

    def __rand__(self, other: Any) -> Tensor:
        return self._reflected(Op.AND, other)

    def __or__(self, other: Any) -> Tensor:
        return self._with(Op.OR, other)

    def __ror__(self, other: Any) -> Tensor:
        return self._reflected(Op.OR, other)

    def __xor__(self, other: Any) -> Tensor:
        return self._with(Op.XOR, other)

    def __rxor__(self, other: Any) -> Tensor:
        return self._reflected(Op.XOR, other)

    def __lshift__(self, other: Any) -> Tensor:
        return self._with(Op.SHL, other)

    def __rlshift__(self, other: Any) -> Tensor:
        return self._reflected(Op.SHL, other)

    def __rshift__(self, other: Any) -> Tensor:
        return self._with(Op.SHR, other)

    def __rrshift__(self, other: Any) -> Tensor:
        return self._reflected(Op.SHR, other)

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


NAME = "unaryelementwise"
"""The name in a trace of an op that is several nodes."""
NEAR = 0.5
"""For smaller x 1 - 2/(exp(2x) + 1) would cancel."""


class Unary(Operators):
    """The base class of Tensor with its functions: those of a single op, and composed ones."""

    __slots__ = ()

    @abstractmethod
    def _unary(self, op: Op) -> Tensor:
        """op(self)."""

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
