"""Shared by all tests: the OpenCL device, which no main job needs."""

from __future__ import annotations

import pytest

from uop.compiler.runtime.opencl import OpenCLDevice, open_opencl, use_cache_dir
from uop.spec.errors import UnsupportedError


@pytest.fixture(scope="session")
def opencl(tmp_path_factory: pytest.TempPathFactory) -> OpenCLDevice:
    """A device with a kernel cache of its own; where none builds kernels the test is skipped."""
    use_cache_dir(tmp_path_factory.mktemp("pocl"))
    try:
        return open_opencl()
    except UnsupportedError as error:
        pytest.skip(str(error))
