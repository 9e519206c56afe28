"""CUDA sources of what the suite generates: NVRTC compiles them, many kernels to a source."""

from __future__ import annotations

import pytest

from uop.compiler.bundle import Bundle, Job
from uop.compiler.pipeline import compile
from uop.compiler.runtime.cuda import nvrtc_compile
from uop.compiler.runtime.device import require
from uop.conformance.suite.case import Case
from uop.conformance.suite.generate import cases
from uop.spec.errors import UnsupportedError

pytestmark = pytest.mark.slow

KERNELS = 50
STRIDE = {"op": 37, "graph": 9}


@pytest.fixture(scope="module", autouse=True)
def nvrtc() -> None:
    try:
        require("cupy_backends.cuda.libs.nvrtc", "cuda")
    except UnsupportedError as error:
        pytest.skip(str(error))


@pytest.mark.cuda
@pytest.mark.parametrize("level", list(STRIDE))
def test_nvrtc_compiles_a_sample_of_the_suite(level: str) -> None:
    found = [c for c in cases((level,), effort="smoke") if isinstance(c, Case)]
    sample = [c.root for c in found if not c.is_exhaustive][:: STRIDE[level]]
    programs = [compile(root, "cuda") for root in sample]
    jobs: list[Job] = []
    count = 0
    for program in programs:
        jobs.append(Job(program, []))
        count += len(program.executable.steps)
        if count >= KERNELS or program is programs[-1]:
            assert nvrtc_compile(Bundle(jobs).source)
            jobs, count = [], 0
