"""Declarations of the marker ops, which are the identity on data."""

from __future__ import annotations

from uop.spec.ops import gradients
from uop.spec.ops.constraints import has_value
from uop.spec.ops.kinds import value
from uop.spec.ops.names import Op

MARKERS = {
    Op.CONTIGUOUS: ("T, in contiguous memory.", gradients.to_first),
    Op.CONTIGUOUSBACKWARD: ("T; its gradient is made contiguous.", gradients.contiguous),
    Op.DETACH: ("T; no gradient flows through it.", gradients.stopped),
}
for _op, (_doc, _gradient) in MARKERS.items():
    value("marker", _op, _doc, ("T",), has_value(f"{_op.name}.c1"), gradient=_gradient)
