"""Text of a backend: spelled, behind words of ours, and joined with punctuation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uop.conformance.protocol.untrusted import CONTINUED, in_one_line, sanitized


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("plain", "plain"),
        ("a\nb\n", "a\n  | b\n  | "),
        ("\x1b[2J\r\x85\u2028\ud800\0", "\\x1b[2J\\r\\x85\\u2028\\ud800\\x00"),
        ("##[error]x ##vso[a]b # [c] ##d", "#\\x23[error]x #\\x23vso[a]b # [c] ##d"),
        ("###[error]", "##\\x23[error]"),
    ],
)
def test_a_text_is_spelled(text: str, expected: str) -> None:
    assert sanitized(text) == expected


@given(st.text(st.sampled_from("a#[\n\r |:\x1b\u2028ä")))
def test_what_is_sanitized_stays_and_begins_no_line(text: str) -> None:
    once = sanitized(text)
    assert sanitized(once) == once
    assert all(line.startswith(CONTINUED) for line in once.split("\n")[1:])
    assert "##[" not in once
    assert once.replace("\n", "").isprintable()
    assert once.splitlines() == once.removesuffix("\n").split("\n") or not once


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("one", "one"),
        ("it is 1, not 2\nits stage a leaves", "it is 1, not 2; its stage a leaves"),
        ("its source:\n  | int x;\n  |   return\n", "its source: int x; return"),
        ("one\n\n  two", "one; two"),
    ],
)
def test_lines_are_joined_with_punctuation(text: str, expected: str) -> None:
    assert in_one_line(text) == expected
