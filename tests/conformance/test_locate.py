"""The locator: the stage and the firing that change the meaning of a program."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from uop.compiler import pipeline
from uop.compiler.pipeline import OPENCL
from uop.compiler.rewriting.rewrite import Fired, RuleSet, rewrite, rewrites
from uop.compiler.stages.rangeify.lower import RULES, Element, Lowering, Steps
from uop.compiler.stages.stage import Setting, Stage
from uop.conformance.locate.firing import Firing, change_of
from uop.conformance.locate.stages import check_stages
from uop.spec.args import AddrSpace, DTypeArg, FlipArg, ParamArg, RangeArg
from uop.spec.dtype import dtypes
from uop.spec.errors import PassError, UndefinedError, UopError
from uop.spec.ops.names import Op
from uop.spec.text.program import parse
from uop.spec.uop import UOp, const, dims, index_const, param

SETTING = Setting(OPENCL)
DOUBLED = """\
%0 = PARAM [4] {slot=0, dtype=int32} : int32[4]
%1 = ADD %0, %0 : int32[4]
"""
INPUTS = {0: np.array([5, 7, 11, 13], np.int32)}
ROW, COLUMN = (UOp(Op.RANGE, index_const(n), arg=RangeArg(k)) for k, n in enumerate((3, 4)))
MEMORY = UOp(Op.PARAM, dims((12,)), arg=ParamArg(0, dtypes.int32, None, AddrSpace.GLOBAL))


def flat(a: UOp, b: UOp) -> UOp:
    return UOp(Op.ADD, UOp(Op.MUL, a, index_const(4)), b)


def read(index: UOp) -> UOp:
    return UOp(Op.LOAD, UOp(Op.INDEX, MEMORY, index))


@rewrites(Op.ADD)
def subtract(u: UOp) -> UOp | None:
    """A fault: a + b on int32 becomes a - b."""
    return UOp(Op.SUB, *u.src) if u.dtype is dtypes.int32 else None


@rewrites(Op.MUL)
def multiply_by_one(u: UOp) -> UOp | None:
    """No fault: it fires too."""
    return u.src[0] if u.src[1] is const(1, dtypes.int32) else None


def faulty(name: str, fault: Callable[[UOp, Fired], UOp]) -> list[Stage]:
    """The stages, with a fault at the end of one."""

    def with_fault(stage: Stage) -> Stage:
        def run(u: UOp, setting: Setting, fired: Fired) -> UOp:
            return fault(stage.run(u, setting, fired), fired)

        return Stage(stage.name, run, stage.form)

    return [with_fault(s) if s.name == name else s for s in pipeline.STAGES]


def subtracted(u: UOp, fired: Fired) -> UOp:
    return rewrite(u, RuleSet(subtract), fired)


def test_the_stages_of_a_right_program_are_counted() -> None:
    checked = check_stages(parse(DOUBLED), [INPUTS, INPUTS], SETTING)
    assert checked.blame is None
    assert [s.name for s in checked.stages] == [stage.name for stage in pipeline.STAGES]
    assert {s.elements for s in checked.stages} == {8}


@pytest.mark.parametrize("name", ["callify", "rangeify", "optimize", "expand", "select"])
def test_a_wrong_stage_and_its_rule_are_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "STAGES", faulty(name, subtracted))
    checked = check_stages(parse(DOUBLED), [INPUTS], SETTING)
    assert checked.blame is not None
    assert checked.blame.stage == name
    assert checked.blame.message == "output 0[0] is 0, accepted 10"
    assert checked.blame.firing is not None
    assert checked.blame.firing.rule == "subtract"
    assert checked.blame.change is not None
    assert (checked.blame.change.accepted, checked.blame.change.found) == ("10", "0")
    before = [stage.name for stage in pipeline.STAGES]
    assert [s.name for s in checked.stages] == before[: before.index(name)]


def test_a_fault_beside_the_rules_has_no_firing(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = faulty("select", lambda u, _: rewrite(u, RuleSet(subtract)))
    monkeypatch.setattr(pipeline, "STAGES", silent)
    blame = check_stages(parse(DOUBLED), [INPUTS], SETTING).blame
    assert blame is not None
    assert (blame.stage, blame.firing) == ("select", None)


def test_a_stage_that_breaks_its_contract_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(u: UOp, fired: Fired) -> UOp:
        raise PassError("it broke")

    monkeypatch.setattr(pipeline, "STAGES", faulty("plan", broken))
    blame = check_stages(parse(DOUBLED), [INPUTS], SETTING).blame
    assert blame is not None
    assert (blame.stage, blame.message) == ("plan", "it broke")


def test_the_batch_that_shows_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "STAGES", faulty("select", subtracted))
    zeros = {0: np.zeros(4, np.int32)}
    blame = check_stages(parse(DOUBLED), [zeros, INPUTS], SETTING).blame
    assert blame is not None
    assert blame.batch == 1


def test_a_program_without_meaning_is_not_judged() -> None:
    text = f"{DOUBLED}%2 = INDEX %1, 4 : int32[]\n".replace("4 : int32[]", "%3 : int32[]")
    text = text.replace("%2 =", "%3 = CONST {value=4, dtype=index} : index[]\n%2 =")
    with pytest.raises(UopError):
        check_stages(parse(text), [INPUTS], SETTING)


def changed(before: UOp, after: UOp) -> str:
    change = change_of(Firing("select", "rule", before, after), {0: np.arange(12, dtype=np.int32)})
    return "" if change is None else f"{change.where}: {change.accepted} -> {change.found}"


def test_index_arithmetic_is_compared_at_every_position() -> None:
    quotient = UOp(Op.IDIV, flat(ROW, COLUMN), index_const(4))
    assert changed(quotient, ROW) == ""
    assert changed(quotient, COLUMN) == "RANGE 0 = 0, RANGE 1 = 1: 0 -> 1"


def test_a_place_in_memory_is_compared_by_what_is_there() -> None:
    place = UOp(Op.INDEX, MEMORY, flat(ROW, COLUMN))
    assert changed(place, place) == ""
    assert changed(place, UOp(Op.INDEX, MEMORY, ROW)) == "RANGE 0 = 0, RANGE 1 = 1: 1 -> 0"


def test_an_effect_is_compared_by_what_it_writes() -> None:
    stores = [
        UOp(Op.STORE, UOp(Op.INDEX, MEMORY, flat(ROW, COLUMN)), const(n, dtypes.int32))
        for n in (7, 8)
    ]
    loops = [UOp(Op.END, store, COLUMN) for store in stores]
    assert changed(loops[0], loops[0]) == ""
    assert changed(*loops) == "element 0: 7 -> 8"


def test_a_read_that_has_a_meaning_at_some_positions_only_is_judged_there() -> None:
    outside = read(UOp(Op.ADD, flat(ROW, COLUMN), index_const(4)))
    assert changed(outside, outside) == ""
    assert changed(outside, read(flat(ROW, COLUMN))) == "RANGE 0 = 0, RANGE 1 = 0: 4 -> 0"


def test_what_runs_out_of_bounds_afterwards_is_a_change() -> None:
    found = changed(read(flat(ROW, COLUMN)), read(UOp(Op.ADD, flat(ROW, COLUMN), index_const(9))))
    assert "without meaning" in found


def test_whole_tensors_are_compared_too() -> None:
    t = param(0, (2, 3), dtypes.int32)
    doubled = UOp(Op.ADD, t, t)
    assert changed(doubled, UOp(Op.MUL, t, const(2, dtypes.int32))) == ""
    assert "element 0,1" in changed(doubled, t)


def test_special_values_show_what_ordinary_ones_do_not() -> None:
    t = param(0, (64,), dtypes.float32)
    zero = const(0.0, dtypes.float32)
    assert changed(UOp(Op.ADD, t, zero), t) != "", "-0.0 + 0.0 is 0.0"


def test_two_memories_meet_in_pairs_of_special_values() -> None:
    a, b = (param(slot, (16,), dtypes.float32) for slot in (0, 1))
    chosen = UOp(Op.WHERE, UOp(Op.CMPNE, a, b), a, b)
    assert changed(chosen, chosen) == ""
    assert changed(chosen, a) != "", "0.0 and -0.0 are equal"


def test_a_sum_may_be_in_another_order_but_no_other_sum() -> None:
    values = UOp(Op.CAST, read(flat(ROW, COLUMN)), arg=DTypeArg(dtypes.float32))
    assert changed(values, values) == ""


def test_undefined_programs_raise() -> None:
    outside = read(UOp(Op.ADD, flat(ROW, COLUMN), index_const(40)))
    with pytest.raises(UndefinedError):
        changed(outside, outside)


def lowered_again(self: Lowering, e: Element) -> Steps:
    """A fault: what is turned round is read straight."""
    return (yield Element(e.tensor.src[0], e.at, e.gate))


@pytest.mark.parametrize(
    "root",
    [
        UOp(Op.FLIP, param(0, (4,), dtypes.int32), arg=FlipArg((True,))),
        UOp(Op.NEG, UOp(Op.FLIP, param(0, (2, 2), dtypes.int32), arg=FlipArg((False, True)))),
    ],
    ids=["alone", "inside"],
)
def test_a_rule_that_lowers_an_element_is_named(root: UOp, monkeypatch: pytest.MonkeyPatch) -> None:
    """The PARAMs of a kernel are numbered anew: the tensor is judged as a program of its own."""
    monkeypatch.setattr(lowered_again, "__name__", "flip_into_index")
    monkeypatch.setitem(RULES, Op.FLIP, lowered_again)
    blame = check_stages(root, [{0: INPUTS[0].reshape(root.shape)}], SETTING).blame
    assert blame is not None
    assert blame.firing is not None
    assert blame.change is not None
    assert (blame.stage, blame.firing.rule) == ("rangeify", "flip_into_index")
    assert blame.firing.before.op is Op.FLIP
    last = ",".join("0" for _ in root.shape)
    assert blame.change.where == f"element {last}"
    assert blame.change.found == "5"


def test_a_rule_of_indices_is_named_before_those_that_lower(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A wrong index shows in every tensor that is read by it."""
    monkeypatch.setattr(pipeline, "STAGES", faulty("rangeify", subtracted))
    blame = check_stages(parse(DOUBLED), [INPUTS], SETTING).blame
    assert blame is not None
    assert blame.firing is not None
    assert blame.firing.rule == "subtract"
