"""Whatever is put together is a node with all its properties, or breaks a constraint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import (
    addrspaces,
    bits_of,
    devices,
    dtypes_of_values,
    programs,
)

from uop.spec.args import (
    AddrSpace,
    AllReduceArg,
    Arg,
    AxisType,
    BinaryArg,
    BufferArg,
    ConstArg,
    CustomArg,
    CustomFunctionArg,
    DTypeArg,
    FlipArg,
    GetAddrArg,
    GetTupleArg,
    InsArg,
    LanesArg,
    LoadArg,
    PadArg,
    PadFill,
    ParamArg,
    PermuteArg,
    PlaceArg,
    PtrAddArg,
    RangeArg,
    ReduceArg,
    ReplicatedArg,
    SliceArg,
    SourceArg,
    SpecialArg,
    StageArg,
    UniqueArg,
    Unit,
    WmmaArg,
)
from uop.spec.dtype import DTYPES
from uop.spec.errors import InvalidError, UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.properties.shape import is_fixed
from uop.spec.registry import DECLARATIONS, OpDef
from uop.spec.text.json_form import dumps, loads
from uop.spec.text.program import parse, print_program
from uop.spec.uop import UOp, dims, index_const

every_dtype = st.sampled_from(list(DTYPES.values()))
small = st.integers(-1, 3)
numbers = st.lists(small, max_size=3).map(tuple)

ARGS: dict[type[Arg], st.SearchStrategy[Any]] = {
    ParamArg: st.builds(ParamArg, small, every_dtype, devices, addrspaces),
    BufferArg: st.builds(BufferArg, small, every_dtype, devices, st.sampled_from(AddrSpace)),
    ConstArg: dtypes_of_values.flatmap(lambda d: st.builds(ConstArg, bits_of(d), st.just(d))),
    BinaryArg: st.builds(BinaryArg, st.binary(max_size=3)),
    PermuteArg: st.builds(PermuteArg, st.one_of(numbers, st.permutations(range(2)).map(tuple))),
    FlipArg: st.builds(FlipArg, st.lists(st.booleans(), max_size=3).map(tuple)),
    PadArg: st.builds(PadArg, st.sampled_from(PadFill)),
    DTypeArg: st.builds(DTypeArg, every_dtype),
    ReduceArg: st.builds(ReduceArg, st.sampled_from([*Op][:40]), numbers),
    ReplicatedArg: st.builds(ReplicatedArg, numbers),
    SliceArg: st.builds(SliceArg, small, every_dtype),
    GetTupleArg: st.builds(GetTupleArg, small),
    LoadArg: st.builds(LoadArg, devices, addrspaces),
    RangeArg: st.builds(RangeArg, small, st.sampled_from(AxisType)),
    SpecialArg: st.builds(SpecialArg, st.text(max_size=3)),
    WmmaArg: st.builds(
        WmmaArg, *[st.sampled_from([0, 1, 8, 16])] * 3, dtypes_of_values, dtypes_of_values
    ),
    GetAddrArg: st.builds(GetAddrArg, st.text(max_size=3)),
    InsArg: st.builds(InsArg, st.text(max_size=3), every_dtype, numbers),
    CustomArg: st.builds(CustomArg, st.text(max_size=3), every_dtype, numbers),
    CustomFunctionArg: st.builds(CustomFunctionArg, st.text(max_size=3)),
    SourceArg: st.builds(SourceArg, st.text(max_size=3)),
    LanesArg: st.builds(LanesArg, numbers, numbers),
    StageArg: st.builds(StageArg, devices, st.sampled_from(AddrSpace), st.booleans()),
    PtrAddArg: st.builds(PtrAddArg, st.sampled_from(Unit)),
    AllReduceArg: st.builds(AllReduceArg, st.sampled_from([*Op][:40]), devices),
    UniqueArg: st.builds(UniqueArg, small),
    PlaceArg: st.builds(PlaceArg, devices),
}
OPERANDS = st.one_of(
    programs(most=4),
    programs(most=4),
    numbers.map(dims),
    small.map(index_const),
    st.just(UOp(Op.SINK)),
)


def test_every_kind_of_arg_is_drawn() -> None:
    assert set(ARGS) == {d.arg for d in DECLARATIONS.values()} - {None}


@st.composite
def attempts(
    draw: Callable[[st.SearchStrategy[Any]], Any], among: Sequence[OpDef]
) -> tuple[Op, list[UOp], Arg | None]:
    """An op with operands and an arg that need not fit, but have the right number and type."""
    declaration = draw(st.sampled_from(among))
    least = declaration.least
    most = least + 2 if declaration.most is None else declaration.most
    src = draw(st.lists(OPERANDS, min_size=least, max_size=most))
    return declaration.op, src, None if declaration.arg is None else draw(ARGS[declaration.arg])


@settings(max_examples=400, deadline=None)
@given(attempts([*DECLARATIONS.values()]))
def test_a_node_has_all_its_properties_or_is_invalid(
    attempt: tuple[Op, list[UOp], Arg | None],
) -> None:
    op, src, arg = attempt
    try:
        u = UOp(op, *src, arg=arg)
    except (InvalidError, UnsupportedError):
        return
    fits_together(u)
    assert parse(print_program(u)) is u
    assert loads(dumps(u)) is u


def outcome(declaration: OpDef, src: Sequence[Any], arg: Arg | None) -> object:
    """The label of the first constraint that is broken, or the properties."""
    u: Any = SimpleNamespace(op=declaration.op, src=tuple(src), arg=arg)
    for constraint in declaration.constraints:
        if constraint.broken(u) is not None:
            return constraint.label
    u.dtype = declaration.dtype(u)
    return u.dtype, declaration.shape(u), declaration.device(u), declaration.addrspace(u)


@settings(max_examples=400, deadline=None)
@given(attempts([d for d in DECLARATIONS.values() if d.by_types]))
def test_types_decide_about_nodes_whose_outcome_is_cached_by_them(
    attempt: tuple[Op, list[UOp], Arg | None],
) -> None:
    op, src, arg = attempt
    assume(all(is_fixed(s.shape) and not isinstance(s.device, tuple) for s in src))
    # No rule sees the sources, arg or interval of an operand here, and each op is the same.
    types = [
        SimpleNamespace(
            op=Op.NOOP, dtype=s.dtype, shape=s.shape, device=s.device, addrspace=s.addrspace
        )
        for s in src
    ]
    assert outcome(DECLARATIONS[op], types, arg) == outcome(DECLARATIONS[op], src, arg)


def fits_together(u: UOp) -> None:
    assert all(dim >= 0 for dim in u.shape if isinstance(dim, int))
    assert (u.min_max is None) == (u.dtype is DTYPES["void"])
    if u.min_max is not None:
        assert u.dtype.min <= u.min_max.min <= u.min_max.max <= u.dtype.max
    assert u.axis is None or 0 <= u.axis < len(u.shape)


@pytest.mark.parametrize("op", DECLARATIONS, ids=lambda op: op.name)
def test_every_op_has_all_its_properties(op: Op, examples: dict[Op, UOp]) -> None:
    fits_together(examples[op])
