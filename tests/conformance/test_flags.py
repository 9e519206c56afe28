"""A library that sets flags of the processor: its process has them, the judge has not."""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np
import pytest

from uop.conformance.report.model import Conclusion
from uop.conformance.run.conform import conform
from uop.conformance.run.options import Options

LEAST = np.float32(2.0**-149)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the flags are those of x86-64")
@pytest.mark.parametrize("profile", ["strict", "ftz=float32"])
def test_a_library_that_flushes_subnormals_fails_unless_it_may(
    profile: str, tmp_path: Path
) -> None:
    options = Options(
        "backends_for_tests:FlagsOfProcessor",
        profile=profile,
        levels=("op",),
        ops=("ADD",),
        dtypes=("float32",),
        effort="smoke",
        workers=1,
        output=tmp_path,
    )
    report = conform(options)
    fails = profile == "strict"
    assert report.conclusion is (Conclusion.DOES_NOT if fails else Conclusion.CONFORMS)
    assert all("0x1p-149" in failure.message for failure in report.failures)
    assert LEAST + np.float32(0) == LEAST != 0
