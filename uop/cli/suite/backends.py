"""`uop backends`: lists the backends, and says what one lacks on this machine."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.util import find_spec

import click

from uop.spec.errors import UopError

WAYS = (
    ("Linux on x86-64, Windows", 'pip install "uop[opencl]"'),
    ("Debian and Ubuntu", "apt install pocl-opencl-icd"),
    ("Fedora", "dnf install pocl"),
    ("macOS", "brew install pocl"),
)
"""How to install an OpenCL driver for the CPU, by system."""
NEEDS = {
    "cuda": ("cupy", "cuda"),
    "iree": ("iree.compiler", "iree"),
    "oclgrind": ("pyopencl", "opencl"),
    "onnx-reference": ("onnx", "onnx"),
    "onnxruntime": ("onnxruntime", "onnxruntime"),
    "opencl": ("pyopencl", "opencl"),
    "openvino": ("openvino", "openvino"),
    "stablehlo": ("jaxlib", "xla"),
    "tinygrad": ("tinygrad", "tinygrad"),
    "tvm": ("tvm", "tvm"),
    "xla": ("jaxlib", "xla"),
}
"""By backend of this project the module of another one that it needs, and the extra with that."""


@click.command("backends")
@click.option(
    "--devices", "starts", is_flag=True, help="Start each, and show its device or the reason."
)
def backends(starts: bool) -> None:
    """List the backends and say which packages they lack.

    With `--devices` each is started in a process of its own. Below `opencl` stands every OpenCL
    device with the names by which it can be asked for, and why not where it cannot be used.
    Installed packages add backends by an entry point in the group `uop.backends`; none replaces one
    of this package.
    """
    from uop.conformance.backends import names

    known = names()
    width = max(map(len, known), default=0)
    if not starts:
        for name in known:
            click.echo(f"{name:{width}}  {installed(name)}")
        click.echo("uop backends --devices starts each, and says which can be used here")
        return
    for name in known:
        # Before the backend starts, because the result holds for its process too.
        below = list(devices()) if name == "opencl" else []
        usable, said = probe(name)
        first, *more = said.splitlines()
        click.echo(f"{name:{width}}  {'ready' if usable else 'missing':7}  {first}")
        for line in [*more, *below]:
            click.echo(" " * (width + 11) + line)
        if name == "opencl" and not usable:
            click.echo(ways())


def installed(name: str) -> str:
    """Whether what a backend needs is installed, and how to get that."""
    if is_installed(name):
        return "installed"
    module, extra = NEEDS[name]
    return f'missing    no module {module}; install it with: pip install "uop[{extra}]"'


def usable() -> list[str]:
    """The backends whose packages are here, without the interpreter."""
    from uop.conformance.backends import INTERPRETER, names

    return [name for name in names() if name != INTERPRETER and is_installed(name)]


def is_installed(name: str) -> bool:
    """Whether the module that a backend needs is here; nothing is imported."""
    try:
        return name not in NEEDS or find_spec(NEEDS[name][0]) is not None
    except ModuleNotFoundError:
        # One above it is missing.
        return False


def probe(name: str) -> tuple[bool, str]:
    """Whether a backend starts here, with its device or the reason."""
    from uop.conformance.workers.sessions import started

    try:
        with started(name) as session:
            return True, f"{session.hello.device} ({session.hello.version})"
    except UopError as error:
        return False, str(error)


def devices() -> Iterator[str]:
    """A line for each OpenCL device, which is tried again, and for each driver without any."""
    from uop.compiler.runtime.drivers import embedded, listed
    from uop.compiler.runtime.trials import by_number, try_anew

    if find_spec("pyopencl") is None:
        return
    trials = [try_anew(driver) for driver in (*listed(), *embedded())]
    for place, found in by_number(trials).items():
        said = found.seen.refusal or f"{found.seen.name}, {found.seen.version}"
        yield f"opencl:{place}  opencl:{found.seen.variant}  {said} ({found.driver.source})"
    for trial in trials:
        if trial.failure:
            yield f"{trial.driver.source}  {trial.failure}"


def ways() -> str:
    """The lines about installing an OpenCL driver for the CPU."""
    here = f"{platform.system()} on {platform.machine()}"
    lines = [f"    This is {here}. An OpenCL driver for the CPU comes by:"]
    lines += [f"      {where:24} {how}" for where, how in WAYS]
    return "\n".join(lines)
