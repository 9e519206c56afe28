"""Shared by all tests: which uop they test, its command line, and the OpenCL device."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest
from hypothesis import settings

import uop
from uop.__main__ import main
from uop.compiler.runtime.kernel_cache import use_cache_dir
from uop.compiler.runtime.opencl import OpenCLDevice, open_opencl
from uop.spec.errors import UnsupportedError


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--uop", help="the folder uop/ to test, if not the one that is installed")


def pytest_configure(config: pytest.Config) -> None:
    """Whose folder comes first on the import path is easily another one than was meant."""
    told, found = config.getoption("--uop"), Path(str(uop.__file__)).resolve().parent
    wanted = installed() if told is None else Path(told).resolve()
    if found != wanted:
        raise pytest.UsageError(
            f"these tests are for {wanted or 'an installed uop, and none is'}, and import {found}; "
            f"install it, start pytest in another way, or say --uop {found}"
        )
    # How long an example takes is the machine's.
    settings.register_profile("uop", deadline=None)
    settings.load_profile("uop")
    # A shell has what it starts in the background ignore Ctrl-C, and so would what tests start.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def installed() -> Path | None:
    """The folder of the installed package: in a clone, where it is installed editable."""
    try:
        found = distribution("uop")
    except PackageNotFoundError:
        return None
    origin = json.loads(found.read_text("direct_url.json") or "{}")
    if origin.get("dir_info", {}).get("editable"):
        return Path(url2pathname(urlsplit(origin["url"]).path)).resolve() / "uop"
    return Path(str(found.locate_file("uop"))).resolve()


@pytest.fixture(scope="session")
def opencl(tmp_path_factory: pytest.TempPathFactory) -> OpenCLDevice:
    """The first device that can be used; UOP_OPENCL_PLATFORM names another, as intel does.

    PoCL has a kernel cache of its own. Where no device builds kernels the test is skipped.
    """
    use_cache_dir(tmp_path_factory.mktemp("pocl"))
    try:
        return open_opencl()
    except UnsupportedError as error:
        pytest.skip(str(error))


@pytest.fixture
def jaxlib() -> None:
    """The extra xla."""
    pytest.importorskip("jaxlib", reason="needs the extra xla")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one command did: its exit code and both of its streams."""

    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture(name="uop")
def run_uop(capsys: pytest.CaptureFixture[str]) -> Run:
    """`uop("run", path)` is the command `uop run PATH`."""

    def run(*arguments: object) -> Outcome:
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run
