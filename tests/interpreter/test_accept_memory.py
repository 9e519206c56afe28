"""Sets that memory holds: places read from memory, stores that may happen or not."""

from __future__ import annotations

import numpy as np

from uop.interpreter.accept import accept
from uop.interpreter.adversary.evaluation import evaluate_adversarially
from uop.spec.args import AddrSpace, BufferArg, DTypeArg, GetTupleArg, ParamArg
from uop.spec.dtype import DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, param

F32, I32 = dtypes.float32, dtypes.int32


def buffer(slot: int, shape: tuple[int, ...], dtype: DType) -> UOp:
    return UOp(Op.BUFFER, dims(shape), arg=BufferArg(slot, dtype))


def test_an_index_read_from_a_buffer_picks_what_it_names() -> None:
    """Also where a location is indexed: the set of each index is single."""
    places, table, out = (buffer(k, (4,), d) for k, d in enumerate((I32, F32, F32)))
    wide = UOp(Op.AFTER, table, UOp(Op.STORE, table, UOp(Op.EXP2, param(3, (4,), F32))))
    index = UOp(Op.CAST, places, arg=DTypeArg(dtypes.index))
    root = UOp(Op.SINK, UOp(Op.STORE, out, UOp(Op.LOAD, UOp(Op.INDEX, wide, index))))
    x = np.asarray([0.3, 1, -2.7, 0], np.float32)
    inputs = {0: np.asarray([3, 0, 2, 0], np.int32), 1: np.zeros(4, np.float32), 3: x}
    found = accept(root, inputs)[-1]
    assert found.single.tolist() == [True, False, False, False]
    (table_sets,) = accept(UOp(Op.EXP2, param(3, (4,), F32)), {3: x})
    for end, whole in ((found.lo, table_sets.lo), (found.hi, table_sets.hi)):
        assert end.tobytes() == whole[inputs[0]].tobytes()


def test_what_a_location_may_hold_goes_into_the_body_of_a_function() -> None:
    out, x = buffer(0, (4,), F32), param(1, (4,), F32)
    stored = UOp(Op.AFTER, out, UOp(Op.STORE, out, UOp(Op.EXP2, x)))
    inside = UOp(Op.PARAM, dims((4,)), arg=ParamArg(0, F32, addrspace=AddrSpace.GLOBAL))
    body = UOp(Op.TUPLE, UOp(Op.LOAD, inside))
    root = UOp(Op.GETTUPLE, UOp(Op.FUNCTION, body, stored), arg=GetTupleArg(0))
    inputs = {1: np.asarray([0.1, 0.2, 0.3, 0.4], np.float32)}
    (found,), (computed,) = accept(root, inputs), accept(UOp(Op.EXP2, x), inputs)
    assert found.lo.tobytes() == computed.lo.tobytes()
    assert found.hi.tobytes() == computed.hi.tobytes()


def test_a_store_under_a_gate_that_is_not_certain_is_either_value() -> None:
    out, x = buffer(0, (4,), F32), param(1, (4,), F32)
    gate = UOp(Op.CMPLT, UOp(Op.EXP2, x), const(1.5, F32))
    new = param(2, (4,), F32)
    first = UOp(Op.STORE, out, new, gate)
    again = UOp(Op.STORE, UOp(Op.AFTER, out, first), UOp(Op.SIN, new), gate)
    near = float(np.log2(1.5))
    inputs = {
        0: np.full(4, 5, np.float32),
        1: np.asarray([0, near, 3, near], np.float32),
        2: np.asarray([0, 7, 7, -1], np.float32),
    }
    (found,) = accept(UOp(Op.SINK, first), inputs)
    assert found.lo.tolist() == [0, 5, 5, -1]
    assert found.hi.tolist() == [0, 7, 5, 5]
    (found,) = accept(UOp(Op.SINK, again), inputs)
    assert found.lo[2] == found.hi[2] == 5
    assert found.contains(np.asarray([0, np.sin(7.0), 5, np.sin(-1.0)], np.float32)).all()
    assert (found.lo[3], found.hi[1]) == (-1, 7)
    for seed in range(20):
        result = evaluate_adversarially(UOp(Op.SINK, again), inputs, seed)
        assert isinstance(result, dict)
        assert found.contains(result[0]).all()
