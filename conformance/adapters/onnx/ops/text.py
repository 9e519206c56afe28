"""The rules of text that has become numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from operator import and_

import numpy as np

from uop.conformance.adapters.onnx.rules import constant, rule
from uop.spec.dtype import dtypes
from uop.spec.frontend.compositions import full
from uop.spec.frontend.tensor import Tensor


@rule("TfIdfVectorizer")
def term_frequencies(
    x: Tensor,
    *,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: Sequence[int],
    ngram_indexes: Sequence[int],
    pool_int64s: Sequence[int],
    weights: Sequence[float] | None = None,
) -> Tensor:
    """How often each gram of the pool stands in each row, with up to some elements between."""
    rows = x.reshape(1, -1) if x.ndim == 1 else x
    grams = _grams(pool_int64s, ngram_counts)
    size = max(ngram_indexes) + 1
    columns = [full((rows.shape[0],), 0, dtypes.float32)] * size
    for k, (gram, index) in enumerate(zip(grams, ngram_indexes, strict=True)):
        if not min_gram_length <= len(gram) <= max_gram_length:
            continue
        found = _count(rows, gram, max_skip_count if len(gram) > 1 else 0)
        weight = 1.0 if weights is None else weights[k]
        if mode == "IDF":
            found = (found > 0).cast(dtypes.float32)
        columns[index] = found * (1.0 if mode == "TF" else weight)
    result = Tensor.stack(*columns).T
    return result.reshape(-1) if x.ndim == 1 else result


def _grams(pool: Sequence[int], starts: Sequence[int]) -> list[list[int]]:
    """The pool has the grams of one element, of two, ..., each kind from a start on."""
    result = []
    for length, (start, end) in enumerate(pairwise([*starts, len(pool)]), 1):
        result += [[*pool[k : k + length]] for k in range(start, end, length)]
    return result


def _count(rows: Tensor, gram: Sequence[int], skips: int) -> Tensor:
    """How often a gram stands in each row."""
    total = full((rows.shape[0],), 0, dtypes.float32)
    for step in range(1, skips + 2):
        places = rows.shape[1] - (len(gram) - 1) * step
        if places <= 0:
            break
        hits = [
            rows[:, k * step : k * step + places] == constant(np.asarray(word)).cast(rows.dtype)
            for k, word in enumerate(gram)
        ]
        total = total + reduce(and_, hits).cast(dtypes.float32).sum(-1)
    return total
