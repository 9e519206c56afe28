"""Make random decisions for the builders of programs, all from one primitive."""

from __future__ import annotations

import hashlib
import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")

Words = npt.NDArray[np.uint64]


class Choices(ABC):
    """A stream of decisions: a counter drives it in the suite, Hypothesis in the tests."""

    __slots__ = ()

    @abstractmethod
    def below(self, n: int) -> int:
        """Return one of 0..n-1; 0 is the simplest."""

    def between(self, low: int, high: int) -> int:
        """Return an integer of low..high, both included."""
        return low + self.below(high - low + 1)

    def pick(self, options: Sequence[T]) -> T:
        """Return one of the options; the first is the simplest."""
        return options[self.below(len(options))]

    def weighted(self, options: Sequence[tuple[T, int]]) -> T:
        """Return one of the options, each as often as its weight says."""
        left = self.below(sum(weight for _, weight in options))
        for option, weight in options:
            if left < weight:
                return option
            left -= weight
        raise AssertionError("weights are positive")

    def chance(self, percent: int) -> bool:
        """Return true with a probability in percent."""
        return self.below(100) >= 100 - percent

    def shuffled(self, options: Sequence[T]) -> list[T]:
        """Return the options in another order."""
        left = list(options)
        return [left.pop(self.below(len(left))) for _ in range(len(left))]

    def data_key(self) -> int:
        """Return a key for `words`: one decision stands for a whole array."""
        return self.below(1 << 32)


class CountedChoices(Choices):
    """The stream of one case, a function of the seed and the case's id alone."""

    __slots__ = ("_uniform",)

    def __init__(self, seed: int, name: str) -> None:
        digest = hashlib.sha256(f"{seed}|{name}".encode()).digest()
        # Python promises the same float stream of `random` for a seed, but no other stream.
        self._uniform = random.Random(int.from_bytes(digest, "big")).random

    def below(self, n: int) -> int:
        return int(self._uniform() * n)


def words(key: int, n: int) -> Words:
    """Return n words, a function of the key that no library version changes."""
    digest = hashlib.shake_128(key.to_bytes(8, "little")).digest(8 * n)
    return np.frombuffer(digest, dtype="<u8").astype(np.uint64)
