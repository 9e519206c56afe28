"""The bestiary's variables, in kernels and in sizes, and memory that is read after a write."""

from __future__ import annotations

import numpy as np
import pytest
from bestiary_lines import read

from uop.interpreter.evaluate import evaluate
from uop.spec.editions import parse, print_program
from uop.spec.errors import InvalidError, UndefinedError, UnsupportedError
from uop.spec.graph import slots_of

MEMORY = (
    "%0 = PARAM {slot=0, size=4, dtype=int32}",
    "%1 = INDEX %0, 0",
    "%2 = CONST {value=5, dtype=int32}",
    "%3 = STORE %1, %2",
    "%4 = AFTER %0, %3",
    "%5 = INDEX %4, 1",
)


def test_a_load_names_the_memory_that_its_index_goes_through_after_a_write() -> None:
    named, same = (read(*MEMORY, f"%6 = LOAD {buffer}, %5") for buffer in ("%0", "%4"))
    assert named is same
    other = "%6 = PARAM {slot=1, size=4, dtype=int32}"
    for load in ("%7 = LOAD %6, %5", "%7 = INDEX %6, 1", "%7 = LOAD %4, %1"):
        text = (*MEMORY, other, load)
        if "INDEX" in load:
            text = (*text, "%8 = PTRCAT %5, %7", "%9 = LOAD %4, %8")
        with pytest.raises(InvalidError, match=r"LOAD\.index"):
            read(*text)


def test_a_view_that_says_no_dtype_has_that_of_its_buffer() -> None:
    buffer = "%0 = BUFFER {size=4, dtype=int16}"
    plain = read(buffer, "%1 = BUFFER_VIEW %0 {size=2, offset=1}", "%2 = NEG %1")
    said = read(buffer, "%1 = BUFFER_VIEW %0 {size=2, offset=1, dtype=int16}", "%2 = NEG %1")
    assert plain is said


FIRST = (
    "%0 = PARAM {slot=0, size=1, dtype=int32}",
    "%1 = PARAM {slot=1, size=5, dtype=int32}",
    '%2 = DEFINE_VAR {name="n", min=1, max=5}',
    "%3 = BIND %2, 3",
    "%4 = RANGE %{bound} {axis_id=0, axis_type=REDUCE}",
    "%5 = INDEX %1, %4",
    "%6 = LOAD %1, %5",
    "%7 = REDUCE %6, %4 {reduce_op=ADD}",
    "%8 = INDEX %0, 0",
    "%9 = STORE %8, %7",
    "%10 = SINK %9",
    "%11 = UNIQUE {id=0}",
    "%12 = BUFFER %11 {size=1, dtype=int32}",
    "%13 = UNIQUE {id=1}",
    "%14 = BUFFER %13 {size=5, dtype=int32}",
    "%15 = CALL %10, %12, %14{argument}",
    "%16 = SINK %15",
)
"""The sum of the first n of five numbers, by a kernel that names n."""


@pytest.mark.parametrize(
    ("bound", "argument", "total"),
    [(2, "", 10), (2, ", %3", 6), (3, "", 6), (2, ", %2", 10)],
    ids=["free", "bound outside", "bound inside", "an argument"],
)
def test_a_variable_in_a_kernel_is_the_one_of_that_name_around_it(
    bound: int, argument: str, total: int
) -> None:
    lines = [
        line.replace("{bound}", str(bound)).replace("{argument}", argument)
        for line in FIRST
        if bound == 3 or argument == ", %3" or "BIND" not in line
    ]
    u = read(*lines)
    numbers = {1: np.arange(1, 6, dtype=np.int32)}
    variables = {slot: np.array(4) for slot in slots_of(u) if slot > 1}
    assert bool(variables) == (total == 10)
    result = evaluate(u, numbers | variables)
    assert isinstance(result, dict)
    assert result[0].tolist() == [total]
    assert parse(print_program(u, "bestiary")) is u


def test_a_call_of_a_function_has_the_variables_of_its_body() -> None:
    lines = [line for line in FIRST if "BIND" not in line]
    through = "%20 = FUNCTION %10, %0, %1"
    text = "\n".join(lines).replace("{bound}", "2").replace("{argument}", "")
    called = text.replace("%15 = CALL %10", f"{through}\n%15 = CALL %20")
    assert read(called) is read(text)


def test_a_pad_and_a_shrink_have_symbolic_sizes() -> None:
    n = '%0 = DEFINE_VAR {name="n", min=1, max=8, slot=0}'
    size, t = "%1 = STACK %0", "%2 = PARAM %1 {slot=1, dtype=int32}"
    inputs = {0: np.array(3), 1: np.array([1, 2, 3], np.int32)}
    for word, expected in (
        ("%3 = PAD %2, [1], [0]", [0, 1, 2, 3]),
        ("%3 = PAD %2, %1, [2]", [0, 0, 0, 1, 2, 3, 0, 0]),
        ("%3 = SHRINK %2, [0], %1", [1, 2, 3]),
        ("%3 = SHRINK %2, [1], %1", [2, 3]),
    ):
        u = read(n, size, t, word)
        assert np.asarray(evaluate(u, inputs)).tolist() == expected
        with pytest.raises(UnsupportedError, match=r"SIZES\.c2|expected a CONST"):
            print_program(u, "bestiary")


def test_what_joins_values_of_symbolic_sizes_wants_numbers() -> None:
    lines = (
        '%0 = DEFINE_VAR {name="n", min=1, max=8, slot=1}',
        "%1 = VECTORIZE %0",
        "%2 = PARAM %1 {slot=2, dtype=int32}",
        "%3 = CAT %2, %2",
    )
    with pytest.raises(UnsupportedError, match=r"SIZES\.c2"):
        read(*lines)


def test_a_loop_around_a_call_is_refused_by_name() -> None:
    around = (
        *FIRST[:16],
        "%16 = CONST {value=3, dtype=index}",
        "%17 = RANGE %16 {axis_id=1, axis_type=Loop}",
        "%18 = END %15, %17",
        "%19 = SINK %18",
    )
    lines = [line.replace("{bound}", "3").replace("{argument}", "") for line in around]
    inputs = {0: np.zeros(1, np.int32), 1: np.arange(1, 6, dtype=np.int32)}
    with pytest.raises(UndefinedError, match=r"CALL\.u1: .*\n.*RANGE"):
        evaluate(read(*lines), inputs)
