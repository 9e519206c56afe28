"""Judging outputs by sets written by hand: what is inside, what is counted, what is said."""

import math

import numpy as np
import pytest

from uop.conformance.judging.compare import Counts, Symptom, compare
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.accepted.sets import Sets
from uop.interpreter.numeric.storage import Array
from uop.interpreter.values import Value
from uop.spec.dtype import dtypes

FLOATS = np.array([1.0, -0.0, math.inf], np.float32)
NAN = np.array([0x7FC00001], np.uint32).view(np.float32)


def only(data: Array) -> Accepted:
    """Nothing but these bits."""
    return Accepted(dtypes.float32, Value(data))


def between(lo: list[float], hi: list[float], reference: list[float]) -> Accepted:
    low, high, middle = (np.array(a, np.float32) for a in (lo, hi, reference))
    return Accepted(dtypes.float32, Value(middle), Sets(low, high))


def test_the_same_bits_are_inside_single_and_constrained() -> None:
    found = compare([only(FLOATS)], [FLOATS.copy()])
    assert found.counts == Counts(3, 3, 3, 3)
    assert found.mismatch is None


def test_the_sign_of_zero_counts() -> None:
    found = compare([only(FLOATS)], [np.array([1.0, 0.0, math.inf], np.float32)])
    assert found.mismatch is not None
    assert (found.mismatch.element, found.mismatch.symptom) == (1, Symptom.SPECIAL)
    assert "output 0[1] is 0x0p+0" in found.mismatch.message


def test_the_payload_of_a_copied_nan_counts_and_that_of_a_made_one_does_not() -> None:
    other = np.array([0xFFC12345], np.uint32).view(np.float32)
    made = Accepted(dtypes.float32, Value(NAN, free_nan=np.array([True])))
    assert compare([only(NAN)], [NAN]).mismatch is None
    assert compare([only(NAN)], [other]).mismatch is not None
    assert compare([made], [other]).mismatch is None


def test_an_unspecified_element_may_be_anything_and_is_not_constrained() -> None:
    value = Value(np.array([7, 8], np.int32), unspecified=np.array([True, False]))
    accepted = Accepted(dtypes.int32, value)
    found = compare([accepted], [np.array([-1, 8], np.int32)])
    assert found.mismatch is None
    assert found.counts == Counts(2, 2, 1, 1)
    assert compare([accepted], [np.array([-1, 9], np.int32)]).mismatch is not None


def test_max_ulp_is_the_distance_from_the_reference() -> None:
    one = np.float32(1.0)
    three_up = one + 3 * np.spacing(one)
    found = compare([between([0.5], [2.0], [1.0])], [np.array([three_up], np.float32)])
    assert found.mismatch is None
    assert found.counts.max_ulp == 3.0


@pytest.mark.parametrize(
    ("got", "symptom"),
    [
        (np.nextafter(np.float32(2), np.float32(3)), Symptom.ULP),
        (3.5, Symptom.VALUE),
        (math.nan, Symptom.SPECIAL),
        (math.inf, Symptom.SPECIAL),
    ],
)
def test_how_wrong_a_result_is(got: float, symptom: Symptom) -> None:
    found = compare([between([1.0], [2.0], [1.5])], [np.array([got], np.float32)])
    assert found.mismatch is not None
    assert found.mismatch.symptom is symptom


def test_a_wrong_shape_dtype_or_number_of_outputs_is_a_failure_not_an_error() -> None:
    for outputs in ([FLOATS[:2]], [FLOATS.astype(np.float64)], [], [FLOATS, FLOATS]):
        found = compare([only(FLOATS)], outputs)
        assert found.mismatch is not None
        assert found.mismatch.symptom is Symptom.VALUE
        assert found.mismatch.element is None


def test_all_outputs_are_looked_at_and_the_first_wrong_one_is_named() -> None:
    wrong = FLOATS.copy()
    wrong[2] = 5.0
    found = compare([only(FLOATS), only(FLOATS)], [FLOATS, wrong])
    assert found.counts.elements == 6
    assert found.mismatch is not None
    assert (found.mismatch.output, found.mismatch.element) == (1, 2)


def test_an_output_without_elements_is_inside() -> None:
    nothing = np.zeros((0, 3), np.float32)
    assert compare([only(nothing)], [nothing]).mismatch is None


def test_a_byte_that_is_no_bool_is_told_as_it_is() -> None:
    output = np.array([1, 0, 255], np.uint8).view(np.bool_)
    expected = Accepted(dtypes.bool, Value(np.array([True, False, True])))
    found = compare([expected], [output])
    assert found.mismatch is not None
    assert found.mismatch.message == "output 0[2] is 0xff, accepted true"
