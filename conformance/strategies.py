"""Lets Hypothesis sample and shrink the programs of the suite."""

from __future__ import annotations

from hypothesis import strategies as st

from uop.conformance.suite.choices import Choices


class HypothesisChoices(Choices):
    """`Choices` sampled by Hypothesis."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data

    def below(self, n: int) -> int:
        return self._data.draw(st.integers(0, n - 1))
