"""Shared by all tests: which uop they test, its command line, and the OpenCL device."""

from __future__ import annotations

import json
import os
import re
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname
from zlib import crc32

import pytest
from hypothesis import settings

import uop
from uop.__main__ import main
from uop.compiler.runtime.cache import POCL_VARIABLE
from uop.compiler.runtime.opencl import OpenCLDevice, open_opencl
from uop.compiler.runtime.trials import choose
from uop.spec.errors import UnsupportedError

FAST = "not slow"
"""The expression of marks that chooses the fast half."""
SLOW_MODULE = "\npytestmark = pytest.mark.slow\n"
NOT_RUN = (
    "the slow half is not run: what takes long, and what needs NVRTC, jax, ONNX Runtime, tinygrad "
    "or Dask: tox -e slow"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--uop", help="the folder uop/ to test, if not the one that is installed")
    parser.addoption("--part", type=part, help="part K of N of what is chosen, as 3/8, by name")


def part(text: str) -> tuple[int, int]:
    """The numbers of K/N."""
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if found is None or not 1 <= (k := int(found[1])) <= (n := int(found[2])):
        raise pytest.UsageError(f"--part: expected K/N with K from 1 to N, found {text!r}")
    return k, n


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import a slow module for the fast half: some generate programs while they load."""
    if config.option.markexpr != FAST or collection_path.suffix != ".py":
        return None
    return SLOW_MODULE in collection_path.read_text("utf-8") or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark as slow what needs a large extra, and what a mark `sampled` leaves out; keep the part
    that is asked for.
    """
    seen: Counter[str] = Counter()
    for item in items:
        if item.get_closest_marker("cuda") or "jaxlib" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
        if sampled := item.get_closest_marker("sampled"):
            function = item.nodeid.partition("[")[0]
            if seen[function] % sampled.args[0]:
                item.add_marker(pytest.mark.slow)
            seen[function] += 1
    if (chosen := config.getoption("--part")) is not None:
        left_out = [item for item in items if not is_of(item.nodeid, *chosen)]
        items[:] = [item for item in items if is_of(item.nodeid, *chosen)]
        config.hook.pytest_deselected(items=left_out)


def is_of(name: str, k: int, n: int) -> bool:
    """Whether a test is of part K of N; tests of one function may be of several."""
    return crc32(name.encode()) % n == k - 1


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if config.option.markexpr == FAST:
        terminalreporter.write_line(NOT_RUN)


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
    # A shell has what it starts in the background ignore Ctrl-C, and nohup the end of a terminal;
    # so would what tests start.
    for name, handler in (("SIGINT", signal.default_int_handler), ("SIGHUP", signal.SIG_DFL)):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


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
    # PoCL reads the variable once, when the first device is opened.
    os.environ[POCL_VARIABLE] = str(tmp_path_factory.mktemp("pocl"))
    try:
        return open_opencl()
    except UnsupportedError as error:
        pytest.skip(str(error))


@pytest.fixture
def pocl() -> None:
    """PoCL, which a process opens that has opened no other driver."""
    try:
        choose("pocl")
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
