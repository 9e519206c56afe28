"""`uop backends`: who can be judged, who can be used here, and what the others lack."""

from __future__ import annotations

import platform
from pathlib import Path
from tempfile import TemporaryDirectory

import click

POCL_WAYS = (
    ("Linux on x86-64", 'pip install "uop[opencl]"'),
    ("Debian and Ubuntu", "apt install pocl-opencl-icd"),
    ("Fedora", "dnf install pocl"),
    ("macOS", "brew install pocl"),
)
"""Where PoCL, an OpenCL driver for every CPU, comes from."""


@click.command("backends")
def command() -> None:
    """List the backends and say which can be used here.

    Each is started in a process of its own. Installed packages add theirs by an entry point in the
    group `uop.backends`; none replaces a backend of this package.
    """
    from uop.conformance.backends import names

    known = names()
    width = max(map(len, known), default=0)
    for name in known:
        usable, said = probe(name)
        first, *more = said.splitlines()
        click.echo(f"{name:{width}}  {'ready' if usable else 'missing':7}  {first}")
        for line in more:
            click.echo(" " * (width + 11) + line)
        if name == "opencl" and not usable:
            click.echo(ways_to_pocl())


def probe(name: str) -> tuple[bool, str]:
    """Whether a backend starts here, and its device or what it lacks."""
    from uop.conformance.workers import Worker
    from uop.spec.errors import UopError

    with TemporaryDirectory(prefix="uop-") as folder:
        try:
            worker = Worker(name, Path(folder))
        except UopError as error:
            return False, str(error)
        worker.close()
    hello = worker.hello
    return True, f"{hello.device} ({hello.version})"


def ways_to_pocl() -> str:
    """How to get an OpenCL driver for the CPU."""
    here = f"{platform.system()} on {platform.machine()}"
    lines = [f"    This is {here}. PoCL, an OpenCL driver for every CPU, comes by:"]
    lines += [f"      {where:18} {how}" for where, how in POCL_WAYS]
    return "\n".join(lines)
