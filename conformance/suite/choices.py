"""Make random decisions for the builders of programs, all from one primitive."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")

Words = npt.NDArray[np.uint64]


class Choices(Protocol):
    """A stream of decisions: a counter drives it in the suite, Hypothesis in the tests."""

    def below(self, n: int) -> int:
        """Return one of 0..n-1; 0 is the simplest."""
        ...


class CountedChoices:
    """The stream of one case, a function of the seed and the case's id alone."""

    __slots__ = ("_uniform",)

    def __init__(self, seed: int, name: str) -> None:
        digest = hashlib.sha256(f"{seed}|{name}".encode()).digest()
        # Python promises the same float stream of `random` for a seed, but no other stream.
        self._uniform = random.Random(int.from_bytes(digest, "big")).random

    def below(self, n: int) -> int:
        return int(self._uniform() * n)


def between(choices: Choices, low: int, high: int) -> int:
    """Return an integer of low..high, both included."""
    return low + choices.below(high - low + 1)


def pick(choices: Choices, options: Sequence[T]) -> T:
    """Return one of the options; the first is the simplest."""
    return options[choices.below(len(options))]


def weighted(choices: Choices, options: Sequence[tuple[T, int]]) -> T:
    """Return one of the options, each as often as its weight says."""
    left = choices.below(sum(weight for _, weight in options))
    for option, weight in options:
        if left < weight:
            return option
        left -= weight
    raise AssertionError("weights are positive")


def chance(choices: Choices, percent: int) -> bool:
    """Return true with a probability in percent."""
    return choices.below(100) >= 100 - percent


def shuffled(choices: Choices, options: Sequence[T]) -> list[T]:
    """Return the options in another order."""
    left = list(options)
    return [left.pop(choices.below(len(left))) for _ in range(len(left))]


def data_key(choices: Choices) -> int:
    """Return a key for `words`: one decision stands for a whole array."""
    return choices.below(1 << 32)


def words(key: int, n: int) -> Words:
    """Return n words, a function of the key that no library version changes."""
    digest = hashlib.shake_128(key.to_bytes(8, "little")).digest(8 * n)
    return np.frombuffer(digest, dtype="<u8").astype(np.uint64)
