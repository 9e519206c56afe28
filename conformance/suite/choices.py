"""Random decisions for the builders of programs: one primitive, and what is made of it."""

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
    """A stream of decisions. A counter drives it in the suite, Hypothesis in the tests."""

    def below(self, n: int) -> int:
        """One of 0..n-1; 0 is the simplest."""
        ...


class CountedChoices:
    """The stream of one case: it depends on the seed and the case's id, on nothing else."""

    __slots__ = ("_uniform",)

    def __init__(self, seed: int, name: str) -> None:
        digest = hashlib.sha256(f"{seed}|{name}".encode()).digest()
        # Of `random`, the float stream is what Python promises to keep for a given seed.
        self._uniform = random.Random(int.from_bytes(digest, "big")).random

    def below(self, n: int) -> int:
        return int(self._uniform() * n)


def between(choices: Choices, low: int, high: int) -> int:
    """An integer of low..high, both included."""
    return low + choices.below(high - low + 1)


def pick(choices: Choices, options: Sequence[T]) -> T:
    """One of the options; the first is the simplest."""
    return options[choices.below(len(options))]


def weighted(choices: Choices, options: Sequence[tuple[T, int]]) -> T:
    """One of the options, each as often as its weight says."""
    left = choices.below(sum(weight for _, weight in options))
    for option, weight in options:
        if left < weight:
            return option
        left -= weight
    raise AssertionError("weights are positive")


def chance(choices: Choices, percent: int) -> bool:
    """True in so many of a hundred cases."""
    return choices.below(100) >= 100 - percent


def shuffled(choices: Choices, options: Sequence[T]) -> list[T]:
    """The options in another order."""
    left = list(options)
    return [left.pop(choices.below(len(left))) for _ in range(len(left))]


def data_key(choices: Choices) -> int:
    """A key for `words`: one decision stands for a whole array."""
    return choices.below(1 << 32)


def words(key: int, n: int) -> Words:
    """n words that are a function of the key, the same with every version of every library."""
    digest = hashlib.shake_128(key.to_bytes(8, "little")).digest(8 * n)
    return np.frombuffer(digest, dtype="<u8").astype(np.uint64)
