"""Where errors of a run are said to be, and how much memory a run may need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from uop.interpreter.evaluate import evaluate
from uop.interpreter.footprint import at_most
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, dims, param

OUT_OF_BOUNDS = """\
%0 = PARAM [2] {slot=0, dtype=int32}
%1 = PARAM [] {slot=1, dtype=int32}
%2 = INDEX %0, %1
%3 = NEG %2
input 0 = [1,2]
input 1 = 2
"""


def test_replay_says_the_line(uop: Any, tmp_path: Path) -> None:
    path = tmp_path / "bad.uop"
    path.write_text(OUT_OF_BOUNDS)
    outcome = uop("replay", path, "interpreter")
    assert outcome.code == 4
    assert "no meaning: INDEX.u1: every index lies in 0..size-1, or is INVALID" in outcome.out
    assert f"at: {path}:3" in outcome.out


def test_memory_has_a_limit_of_ones_own(uop: Any, tmp_path: Path) -> None:
    big = UOp(Op.NEG, UOp(Op.EXPAND, param(0, (1,), dtypes.int32), dims((1 << 20,))))
    given = {0: np.ones(1, np.int32)}
    assert evaluate(big, given).shape == (1 << 20,)  # type: ignore[union-attr]
    with at_most(1 << 20), pytest.raises(UnsupportedError, match=r"VALUE\.n1(.|\n)*of 1048576"):
        evaluate(big, given)
    path = tmp_path / "big.uop"
    path.write_text("%0 = PARAM [4] {slot=0, dtype=int32}\n%1 = NEG %0\ninput 0 = [1,2,3,4]\n")
    assert uop("run", path, "--memory", "1e-6").code == 0
    outcome = uop("run", path, "--memory", "1e-8")
    assert outcome.code == 2
    assert "VALUE.n1" in outcome.err
    assert uop("run", path, "--memory", "0").code == 2
