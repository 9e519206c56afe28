"""The search for optimizations: what it tries, what counts, what is kept. No test asks a clock."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from uop.compiler import beam
from uop.compiler.beam import Beam, candidates
from uop.compiler.pipeline import find_target
from uop.compiler.runtime.cache import VARIABLE
from uop.compiler.stages.optimize.apply import apply
from uop.conformance import search
from uop.conformance.checks import OptionError
from uop.conformance.protocol import wire
from uop.conformance.protocol.types import Outputs
from uop.conformance.search import Found, Search, Timed
from uop.spec.args import AxisType
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.frontend.compositions import gemm
from uop.spec.frontend.tensor import Tensor
from uop.spec.kernel.optimization import MatrixUnit, parse_optimizations
from uop.spec.uop import UOp, param

A, B = (param(slot, (4, 4), dtypes.int32) for slot in range(2))
ROOT: UOp = gemm(Tensor(A), Tensor(B)).uop
X = np.arange(16, dtype=np.int32).reshape(4, 4)
INPUTS = {0: X, 1: X.T.copy()}
RIGHT = X @ X.T
FAST = "SPLIT(1, 4, UPCAST, INNER)"
FASTER = f"{FAST}; SPLIT(0, 2, UPCAST, INNER)"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setattr(beam, "FACTORS", (2, 4))
    monkeypatch.setattr(beam, "TYPES", (AxisType.UPCAST,))


class Faked(Search):
    """A search whose times are those of a table, by the sequence of the only kernel."""

    def __init__(self, times: dict[str, Any], limit: float = 60.0) -> None:
        super().__init__(ROOT, INPUTS, "cuda-host", 2, limit)
        self.times = times

    def _answer(self, trial: search.Proposal) -> Timed | wire.Refused:
        found = self.times.get(trial.sequences[0], 9.0)
        if callable(found):
            found()
        result = RIGHT + 1 if found == "wrong" else RIGHT
        seconds = 0.1 if found == "wrong" else found
        return Timed(seconds, Outputs(((result,),)), "a machine")


def unknown(sequences: object, best: float) -> None:
    """The cost of what is not run."""


def test_candidates_are_legal_and_new() -> None:
    target = find_target("cuda-host")
    (body,) = Beam(ROOT, target, 1, unknown).bodies
    seen: set[UOp] = set()
    found = list(candidates(body, (), seen, target))
    assert parse_optimizations(FAST) in found
    assert len({apply(body, sequence) for sequence in found}) == len(found)
    assert not list(candidates(body, (), seen, target))
    assert all(len(longer) == 2 for longer in candidates(body, found[0], seen, target))


def test_matrix_instructions_are_tried_where_the_target_has_them() -> None:
    factors = (param(slot, (16, 16), dtypes.float16) for slot in range(2))
    root = gemm(*(Tensor(factor).cast(dtypes.float32) for factor in factors)).uop

    def tried(name: str) -> set[str]:
        target = find_target(name)
        (body,) = Beam(root, target, 1, unknown).bodies
        found = (sequence[-1] for sequence in candidates(body, (), set(), target))
        return {str(step) for step in found if isinstance(step, MatrixUnit)}

    assert tried("cuda-host") == {"TC(2, m16n8k16)", "TC(2, m16n8k8)"}
    assert tried("opencl") == set()


def test_the_fastest_is_found_step_by_step() -> None:
    found = Faked({"": 8.0, FAST: 4.0, FASTER: 2.0}).run()
    assert (found.sequences, found.seconds, found.failed) == ((FASTER,), 2.0, 0)


@pytest.mark.parametrize("fault", ["wrong", lambda: os._exit(3), lambda: os.kill(os.getpid(), 9)])
def test_what_is_wrong_or_crashes_does_not_count(fault: Any) -> None:
    found = Faked({"": 8.0, FAST: fault}).run()
    assert found.sequences == ("",)
    assert found.failed == 1


def test_a_candidate_that_hangs_ends_alone() -> None:
    found = Faked({"": 8.0, FAST: lambda: time.sleep(600)}, limit=0.5).run()
    assert (found.sequences, found.failed) == (("",), 1)


def test_a_search_ends_with_the_best_so_far() -> None:
    search_of = Faked({"": 8.0, FAST: 4.0, FASTER: 2.0})
    search_of.whole = 0.0
    found = search_of.run()
    assert (found.sequences, found.tried) == (("",), 1)


def test_the_result_is_kept_and_a_damaged_one_is_searched_again(tmp_path: Path) -> None:
    times = {"": 8.0, FAST: 4.0}
    first = Faked(times).run()
    (place,) = (tmp_path / search.SEARCHES).glob("*.json")
    kept = place.read_text()
    assert Faked(times).run() == Found(first.sequences, first.seconds)
    changed = json.loads(kept) | {"sequences": ["SPLIT(0, 2, UPCAST, INNER)"]}
    for damaged in ("", kept[:20], "[]", json.dumps(changed)):
        place.write_text(damaged)
        assert Faked(times).run() == first
        assert place.read_text() == kept


def test_a_search_on_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beam, "LONGEST", 1)
    monkeypatch.setattr(beam, "FACTORS", (4,))
    found = Search(ROOT, INPUTS, "cuda-host", 1).run()
    assert len(found.sequences) == 1
    assert found.seconds > 0
    assert found.failed == 0


def test_what_it_refuses() -> None:
    with pytest.raises(OptionError, match="--beam: expected 1 or more, found 0"):
        Search(ROOT, INPUTS, "cuda-host", 0)
    with pytest.raises(OptionError, match="--beam: expected a backend of the compiler"):
        Search(ROOT, INPUTS, "numpy", 1)
    with pytest.raises(UnsupportedError, match="without a search: the process"):
        Faked({"": lambda: os._exit(3)}).run()


def test_the_options_of_the_command(uop: Any, tmp_path: Path) -> None:
    program = tmp_path / "negated.uop"
    program.write_text("%0 = PARAM [2] {slot=0, dtype=int32}\n%1 = NEG %0\n")
    outcome = uop("compile", program, "--target", "cuda-host", "--beam", "1")
    assert outcome.code == 0
    assert "__global__" in outcome.out
    assert "--opt '" in outcome.err
    outcome = uop("compile", program, "--target", "cuda-host", "--beam", "1", "--opt", "")
    assert outcome.code == 2
    assert "use one of them" in outcome.err
