"""Runs the first command of the README as on a new machine: the drivers of the wheels alone, in an
empty home, first each by its name and then without each.

`tox -e clean` does it in an environment of its own, whose drivers are cut off meanwhile.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from uop.compiler.runtime.drivers import VENDORS, embedded
from uop.compiler.runtime.trials import trial_of

JUDGE = (sys.executable, "-P", "-m", "uop", "conform", "--effort", "smoke")


def main() -> int:
    """Exit code 1 where a driver that builds kernels does not conform, or none is left."""
    with TemporaryDirectory() as home:
        empty = Path(home, "vendors")
        empty.mkdir()
        os.environ.update(HOME=home, XDG_CACHE_HOME="", **{VENDORS: str(empty)})
        codes = [judge(f"opencl:{name}") for name in usable()]
        for variant in {driver.variant for driver in embedded()}:
            with cut_off(variant):
                print(f"without {variant}:", flush=True)
                codes += [judge("opencl")] if usable() else []
    return int(any(codes) or not codes)


def usable() -> list[str]:
    """The drivers of wheels that build a kernel here; what the others say is shown."""
    found = []
    for trial in map(trial_of, embedded()):
        for refusal in filter(None, [trial.failure, *(seen.refusal for seen in trial.devices)]):
            print(f"{trial.driver.source}: {refusal}", flush=True)
        found += [trial.variant] if any(not seen.refusal for seen in trial.devices) else []
    return found


def judge(backend: str) -> int:
    print(f"$ uop conform {backend} --effort smoke", flush=True)
    return subprocess.run([*JUDGE, backend], check=False).returncode


@contextmanager
def cut_off(variant: str) -> Iterator[None]:
    """The library of a driver without its second half, and whole again at the end."""
    for driver in (driver for driver in embedded() if driver.variant == variant):
        library = Path(driver.library)
        whole = library.with_name(f"{library.name}.whole")
        data = library.read_bytes()
        library.rename(whole)
        try:
            library.write_bytes(data[: len(data) // 2])
            yield
        finally:
            whole.replace(library)
        return
    yield


if __name__ == "__main__":
    sys.exit(main())
