"""The OpenCL runtime: what it uploads, launches and downloads, and how it fails."""

from __future__ import annotations

import numpy as np
import pytest

from uop.compiler.runtime.cuda import open_cuda
from uop.compiler.runtime.device import Launch, require
from uop.compiler.runtime.opencl import OpenCLDevice, open_opencl, variant_of
from uop.compiler.stages.render.grid import Grid
from uop.spec.errors import BackendError, UnsupportedError

ADD = """
kernel void add(global const int* a, global int* b, long step) {
  b[get_global_id(0)] += a[get_global_id(0)] + step;
}
"""


def test_buffers_start_with_what_was_given_and_launches_are_ordered(opencl: OpenCLDevice) -> None:
    a, b = np.arange(12, dtype=np.int32).reshape(3, 4), np.full((3, 4), 100, np.int32)
    launches = [Launch("add", (0, 1), (4,), (2,), (5,)), Launch("add", (1, 0), (4,), (2,), (0,))]
    out_a, out_b = opencl.run(opencl.build(ADD), launches, [a, b])
    np.testing.assert_array_equal(out_b.ravel()[:8], (a + 105).ravel()[:8])
    np.testing.assert_array_equal(out_a.ravel()[:8], (2 * a + 105).ravel()[:8])
    np.testing.assert_array_equal(out_b.ravel()[8:], 100)
    assert out_a.shape == (3, 4)
    assert a[0, 1] == 1


def test_empty_buffers(opencl: OpenCLDevice) -> None:
    empty = np.zeros((0, 3), np.int32)
    results = opencl.run(opencl.build(ADD), [Launch("add", (0, 1), (0,), (1,), (1,))], [empty] * 2)
    assert [r.shape for r in results] == [(0, 3)] * 2


def test_a_strided_array_is_uploaded_as_it_reads(opencl: OpenCLDevice) -> None:
    a = np.arange(8, dtype=np.int32)[::-2]
    _, out = opencl.run(
        opencl.build(ADD), [Launch("add", (0, 1), (4,), (1,), (0,))], [a, np.zeros(4, np.int32)]
    )
    np.testing.assert_array_equal(out, a)


def test_a_launch_covers_its_work_items() -> None:
    assert Grid.covering((65,), 64) == Grid((2,), (64,))
    assert Grid.covering((64, 3), 64) == Grid((1, 3), (64, 1))
    assert Grid.covering((), 64) == Grid((1,), (1,))


def test_a_device_says_what_it_is(opencl: OpenCLDevice) -> None:
    assert opencl.name
    assert "OpenCL" in opencl.version


def test_a_refused_source_says_why(opencl: OpenCLDevice) -> None:
    with pytest.raises(BackendError, match="nonsense"):
        opencl.build("kernel void k(global int* b) { b[0] = nonsense; }")


def test_a_missing_kernel_is_named(opencl: OpenCLDevice) -> None:
    with pytest.raises(BackendError, match="absent"):
        opencl.run(opencl.build(ADD), [Launch("absent", (), (1,), (1,))], [])


@pytest.mark.usefixtures("opencl")
def test_a_missing_platform_is_no_crash() -> None:
    with pytest.raises(UnsupportedError, match="no OpenCL device 'no-such-platform'"):
        open_opencl("no-such-platform")


@pytest.mark.parametrize(
    ("platform", "variant"),
    [
        ("Portable Computing Language", "pocl"),
        ("Intel(R) OpenCL", "intel"),
        ("Intel(R) OpenCL Graphics", "intel-r-opencl-graphics"),
        ("NVIDIA CUDA", "nvidia-cuda"),
    ],
)
def test_a_platform_has_a_short_name(platform: str, variant: str) -> None:
    assert variant_of(platform) == variant


def test_a_missing_module_names_the_line_that_installs_it() -> None:
    with pytest.raises(UnsupportedError, match=r'pip install "uop\[opencl\]"'):
        require("no_such_module", "opencl")


@pytest.mark.cuda
def test_a_missing_gpu_is_no_crash() -> None:
    cupy = pytest.importorskip("cupy")
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError:
        with pytest.raises(UnsupportedError, match="no CUDA device"):
            open_cuda()
    else:
        assert open_cuda().name
