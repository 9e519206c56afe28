"""Which effects of a program wait for which, and the temporaries that pass values between them.

An effect waits for the one that wrote what it reads. One that writes waits for all that have read
the memory since it was last written, which wait for that in turn.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count

from uop.spec.args import BufferArg, Device, GetTupleArg
from uop.spec.dtype import DType
from uop.spec.graph import LEAVES, slot_of
from uop.spec.ops.names import Op
from uop.spec.registry import Sizes
from uop.spec.uop import UOp, dims

TEMPORARY = "temporary"
"""The tag of BUFFERs that pass values from one kernel to another."""


def temporary(slot: int, dtype: DType, shape: Sizes, device: Device) -> UOp:
    return UOp(Op.BUFFER, dims(shape), arg=BufferArg(slot, dtype, device), tag=TEMPORARY)


def free_slots(nodes: Iterable[UOp], taken: int = 0) -> Iterator[int]:
    """The slots above those of the PARAMs and BUFFERs among some nodes, and above so many more."""
    return count(1 + max((slot_of(u) for u in nodes if u.op in LEAVES), default=-1) + taken)


class Order:
    """The effects of a program so far: each buffer that one takes is AFTER what it waits for."""

    def __init__(self) -> None:
        self.writer: dict[UOp, UOp] = {}
        """The last effect that writes each BUFFER."""
        self._readers: dict[UOp, list[UOp]] = {}
        """The effects that have read each BUFFER since."""

    def call(self, body: UOp, buffers: Sequence[UOp], written: Collection[UOp]) -> UOp:
        """Call a kernel on buffers, of which it writes some."""
        waits = (self._waits(b, b in written) for b in buffers)
        call = UOp(Op.CALL, body, *map(_after, buffers, waits))
        self._enter([call], buffers, dict.fromkeys(written, call))
        return call

    def store(self, body: UOp, buffers: Sequence[UOp], targets: Iterable[UOp]) -> None:
        """Store the results of a FUNCTION of buffers: all at once, so each waits for all."""
        function = UOp(Op.FUNCTION, body, *(_after(b, self._waits(b)) for b in buffers))
        waits = [effect for b in targets for effect in self._waits(b, is_written=True)]
        stores = {
            b: UOp(Op.STORE, _after(b, waits), UOp(Op.GETTUPLE, function, arg=GetTupleArg(k)))
            for k, b in enumerate(targets)
        }
        self._enter([*stores.values()], buffers, stores)

    def _waits(self, buffer: UOp, is_written: bool = False) -> Sequence[UOp]:
        """The effects that run before a buffer is read, or written."""
        readers = self._readers.get(buffer) if is_written else None
        return readers or ([self.writer[buffer]] if buffer in self.writer else [])

    def _enter(
        self, effects: Iterable[UOp], buffers: Iterable[UOp], writers: Mapping[UOp, UOp]
    ) -> None:
        for buffer in dict.fromkeys(buffers):
            self._readers.setdefault(buffer, []).extend(effects)
        self.writer |= writers
        self._readers |= {buffer: [] for buffer in writers}


def _after(buffer: UOp, effects: Sequence[UOp]) -> UOp:
    return UOp(Op.AFTER, buffer, *dict.fromkeys(effects)) if effects else buffer
