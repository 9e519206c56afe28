"""How fast compiled kernels are, next to others on the same device.

`python benchmarks/kernels.py [--target cuda] [PART...]` times the works whose names have one of
these words, by default all. All peers of a work run in turn, and a time is the median of their
turns. What a peer cannot do is said under the table with the reason; a wrong result is not timed.
"""

from __future__ import annotations

import os

# Else the threads of BLAS wait in a loop for the next call, beside what is timed after them.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

import click
from kernel_peers import Peer, by_cupy, by_numpy, by_warps, hand, ours, tinygrad
from kernel_works import LARGE, WORKS, Work

from uop.compiler.execute import open_device
from uop.compiler.pipeline import find_target
from uop.compiler.runtime.device import Device
from uop.compiler.timing import copy_bandwidth, repeats_of, turn
from uop.spec.errors import UopError

PEERS = {
    "opencl": {"uop": ours, "tinygrad": tinygrad, "hand": hand, "numpy": by_numpy},
    "cuda": {"uop": ours, "warps": by_warps, "cupy": by_cupy},
    "cuda-host": {"uop": ours, "warps": by_warps, "numpy": by_numpy},
}
TURN = 0.01
"""The least seconds of a turn: what is short runs several times in one."""
TURNS, SECONDS = 15, 4.0
"""The turns of each peer, and the seconds for all turns of a work: what is slow has fewer."""
FEWEST = 3
PAUSE = 0.002


@dataclass(slots=True)
class Timed:
    """A work with the times of its peers, and why others have none."""

    work: Work
    seconds: dict[str, float] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)


def timed(work: Work, device: Device, target: str) -> Timed:
    """Time a work on all peers whose result is right."""
    data, found, peers = work.data(), Timed(work), []
    for name, make in PEERS[target].items():
        try:
            if (peer := make(work, data, device, target)) is None:
                continue
            peer.begin()
            peer.finish()
            wrong = work.differs(peer.result(), data)
        except UopError as error:
            found.missing[name] = str(error)
            continue
        if wrong:
            found.missing[name] = f"the result is {wrong}"
        else:
            peers.append(peer)
    found.seconds = alternated(peers)
    return found


def alternated(peers: Sequence[Peer]) -> dict[str, float]:
    """The median seconds of each peer, all in turn, so that a busy moment meets all of them."""
    repeats = {p.name: repeats_of(turn(p.begin, p.finish, 1), TURN) for p in peers}
    taken: dict[str, list[float]] = {peer.name: [] for peer in peers}
    begun = time.perf_counter()
    for number in range(TURNS):
        if number >= FEWEST and time.perf_counter() - begun > SECONDS:
            break
        for peer in peers:
            taken[peer.name].append(turn(peer.begin, peer.finish, repeats[peer.name]))
            time.sleep(PAUSE)
    return {name: median(each) for name, each in taken.items()}


def row(found: Timed, names: Sequence[str], copied: float) -> str:
    """The times in ms, ours as a multiple of each other, and what ours amounts to."""
    cells = [found.work.name]
    cells += [f"{found.seconds[p] * 1e3:.3g}" if p in found.seconds else "" for p in names]
    mine = found.seconds.get("uop")
    for name in names[1:]:
        other = found.seconds.get(name)
        cells.append(f"{mine / other:.2f}" if mine and other else "")
    cells.append(_rate(found.work, mine, copied) if mine else "")
    return f"| {' | '.join(cells)} |"


def _rate(work: Work, seconds: float, copied: float) -> str:
    if work.flops:
        return f"{work.flops / seconds / 1e9:.3g} GFLOP/s"
    rate = work.bytes / seconds
    return f"{rate / 1e9:.3g} GB/s, {rate / copied:.0%} of a copy"


@click.command(help=__doc__)
@click.argument("parts", nargs=-1)
@click.option("--target", type=click.Choice(list(PEERS)), default="opencl", show_default=True)
def main(parts: tuple[str, ...], target: str) -> None:
    works = (*WORKS, *LARGE) if target == "cuda" else WORKS
    chosen = [w for w in works if not parts or any(part in w.name for part in parts)]
    if not chosen:
        there = ", ".join(work.name for work in works)
        raise click.UsageError(f"no work has {' or '.join(parts)} in its name: {there}")
    device = open_device(find_target(target))
    copied = copy_bandwidth(device)
    click.echo(f"{device.machine}; a copy of 16 MiB: {copied / 1e9:.3g} GB/s\n")
    names = list(PEERS[target])
    others = names[1:]
    click.echo(f"| work | {' | '.join(f'{p}, ms' for p in names)} | "
               f"{' | '.join(f'uop / {p}' for p in others)} | uop |")  # fmt: skip
    click.echo("|---" + "|---:" * (len(names) + len(others)) + "|---|")
    missing: list[str] = []
    for work in chosen:
        found = timed(work, device, target)
        click.echo(row(found, names, copied))
        missing += [f"- {work.name}, {name}: {why}" for name, why in found.missing.items()]
    click.echo("\n" + "\n".join(missing) if missing else "")


if __name__ == "__main__":
    main()
