"""Hypothesis drives the builders of the suite, and shrinks what they made."""

from __future__ import annotations

from hypothesis import strategies as st


class HypothesisChoices:
    """`Choices` drawn by Hypothesis."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data

    def below(self, n: int) -> int:
        return self._data.draw(st.integers(0, n - 1))
