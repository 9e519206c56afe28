"""`uop time`: how long each kernel of a program takes on a device."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uop.cli.names import BACKEND
from uop.cli.programs.compiling import beam_option, chosen, optimizations_option
from uop.cli.programs.files import case_to_run, errors_by_line, native_option, program_options
from uop.conformance.checks import OptionError

if TYPE_CHECKING:
    from uop.compiler.timing import KernelTime
    from uop.conformance.backends.compiled import CompiledBackend

TITLES = ("kernel", "groups x items", "time", "GFLOP/s", "GB/s", "of a copy")


@click.command("time")
@program_options
@click.option(
    "--backend",
    type=BACKEND,
    default="opencl",
    show_default=True,
    help="The device: opencl, opencl:PLATFORM, cuda or cuda-host; with :off behind it without "
    "the optimizations that the compiler chooses.",
)
@optimizations_option
@beam_option
@native_option
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def time(
    file: Path,
    case_id: str | None,
    edition: str,
    backend: str,
    optimizations: tuple[str, ...],
    beam: int | None,
    native: bool,
    as_json: bool,
) -> None:
    """Time the kernels of a program, one row for each.

    Inputs that the file lacks are drawn: floats around 0, integers 0 and 1, the largest number of
    a variable. A time is the median of 9 turns; each runs the kernel alone, on what the kernels
    before it left on the device, for 5 ms or once, and ends with a wait for the device. GFLOP/s
    counts the elementwise ops on numbers that are no indices, for each element once, whatever the
    gates around them; GB/s counts what a kernel reads of each buffer once, and what it writes.
    The last column compares that with a copy of 16 MiB on the device.
    """
    from uop.compiler.pipeline import compile
    from uop.compiler.timing import copy_bandwidth, kernel_times
    from uop.conformance.suite.levels.written import inputs_and_drawn, within_bounds

    case, root = case_to_run(file, case_id, edition, native=native)
    with errors_by_line(case):
        sequences = chosen(optimizations, beam, case, root, backend)
        adapter = adapter_of(backend)
        device = adapter.opened()
        if sequences is None:
            sequences = adapter.optimizations
        compiled = compile(root, adapter.target, optimizations=sequences)
        with compiled.load(device) as loaded:
            times = kernel_times(loaded, inputs_and_drawn(case, root, within_bounds)[0])
    copied = copy_bandwidth(device)
    rows = [figures(each, copied) for each in times]
    if as_json:
        about = {"backend": backend, "device": device.name, "copy_bytes_per_second": copied}
        click.echo(json.dumps({**about, "kernels": rows}, indent=1))
        return
    click.echo(f"{device.name}: a copy of 16 MiB at {copied / 1e9:.3g} GB/s")
    print_table([TITLES, *map(cells, rows)])


def adapter_of(backend: str) -> CompiledBackend:
    """A backend that runs compiled kernels, not started; OptionError for any other."""
    from uop.conformance.backends import load
    from uop.conformance.backends.compiled import CompiledBackend
    from uop.conformance.workers.sessions import known

    known(backend)
    adapter = load(backend)
    if not isinstance(adapter, CompiledBackend):
        raise OptionError(
            f"--backend: expected opencl, cuda or cuda-host, which run compiled kernels; "
            f"found {backend}"
        )
    return adapter


def figures(each: KernelTime, copied: float) -> dict[str, Any]:
    """The figures of a kernel, as JSON has them."""
    return {
        "kernel": each.launch.kernel,
        "groups": list(each.launch.groups),
        "items": list(each.launch.local_size),
        "seconds": each.seconds,
        "flops": each.cost.flops,
        "bytes": each.cost.bytes,
        "flops_per_second": each.flops,
        "bytes_per_second": each.bandwidth,
        "share_of_copy": each.bandwidth / copied,
    }


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """A row of the table."""
    size = " x ".join(",".join(map(str, row[key])) for key in ("groups", "items"))
    rates = (f"{row[key] / 1e9:.3g}" for key in ("flops_per_second", "bytes_per_second"))
    return row["kernel"], size, duration(row["seconds"]), *rates, f"{row['share_of_copy']:.0%}"


def duration(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"


def print_table(rows: list[tuple[str, ...]]) -> None:
    """Columns in line: words to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        aligned = [row[0].ljust(widths[0])]
        aligned += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        click.echo("  ".join(aligned))
