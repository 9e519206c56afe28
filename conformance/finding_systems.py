"""The scripts of `findings/SYSTEM/`: what their first lines say, and the tables that follow."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

FOLDER = Path(__file__).parent / "findings"
FACTS = re.compile(
    r"(?P<title>.+?)\. Class (?P<how>[AB][,:] [^;]+); (?P<values>ordinary|special) values"
    r"(; (?P<apart>algebra|crash))?\. Wrong in (?P<library>\S+) (?P<version>\S+) "
    r"\((?P<date>\d{4}-\d\d-\d\d)\)\. "
)
GROUPS = {
    "ordinary": "Wrong answers on ordinary values",
    "special": "Wrong answers on special values",
    "algebra": "Algebra of real numbers, applied to floats",
    "crash": "Refused, or the process ends",
}
"""The groups of a table, in order."""


@dataclass(frozen=True, slots=True)
class System:
    """A system that findings are in: its name, and the packages that its scripts may import."""

    title: str
    packages: tuple[str, ...]


SYSTEMS = {
    "numpy": System("numpy, with ml_dtypes", ("numpy", "ml_dtypes")),
    "xla": System("XLA on the CPU", ("jax", "jaxlib", "numpy")),
    "stablehlo": System("StableHLO's reference interpreter", ("jax", "jaxlib", "numpy")),
    "onnxruntime": System("ONNX Runtime on the CPU", ("onnxruntime", "onnx", "numpy")),
    "onnx_reference": System("ONNX's reference evaluator", ("onnx", "ml_dtypes", "numpy")),
    "openvino": System("OpenVINO on the CPU", ("openvino", "onnx", "numpy")),
    "iree": System("IREE on the CPU", ("iree", "numpy")),
    "torch": System("PyTorch on the CPU", ("torch", "numpy")),
    "tvm": System("TVM on the CPU", ("tvm", "onnx", "numpy")),
}
"""By folder."""


@dataclass(frozen=True, slots=True)
class SystemScript:
    """A script, as its first lines describe it."""

    path: Path
    title: str
    how: str
    """The class, and against what, as "A, fused against split"."""
    group: str
    """A key of GROUPS."""
    is_ordinary: bool
    library: str
    version: str
    """That of the library in which it ends with 1."""
    date: str

    @property
    def system(self) -> str:
        return self.path.parent.name


def system_scripts() -> list[SystemScript]:
    """Every script, by system and name. ValueError where its first lines lack something."""
    return [
        read_system_script(path)
        for system in SYSTEMS
        for path in sorted((FOLDER / system).glob("[!_]*.py"))
    ]


def read_system_script(path: Path) -> SystemScript:
    """Read the first comment of a script."""
    lines = takewhile(lambda line: line.startswith("#"), path.read_text("utf-8").splitlines())
    facts = FACTS.match(" ".join(line.removeprefix("#").strip() for line in lines) + " ")
    if facts is None:
        raise ValueError(
            f"{path}: the first comment does not give title, class, values and version"
        )
    title, how, values, *more = facts.group("title", "how", "values", "library", "version", "date")
    return SystemScript(path, title, how, facts["apart"] or values, values == "ordinary", *more)


def system_tables(scripts: Sequence[SystemScript]) -> str:
    """A section for each system that has findings, with a table for each group."""
    return "\n\n".join(
        f"### {system.title}\n\n{_table(found)}"
        for name, system in SYSTEMS.items()
        if (found := [s for s in scripts if s.system == name])
    )


def _table(scripts: Iterable[SystemScript]) -> str:
    order = [*GROUPS]
    lines = ["| finding | class | values | wrong in |", "|---|---|---|---|"]
    for s in sorted(scripts, key=lambda s: (order.index(s.group), s.path.name)):
        values = "ordinary" if s.is_ordinary else "special"
        apart = f"; {s.group}" if s.group in ("algebra", "crash") else ""
        link = f"[{s.title}]({s.system}/{s.path.name})"
        lines.append(f"| {link} | {s.how} | {values}{apart} | {s.library} {s.version} ({s.date}) |")
    return "\n".join(lines)


def counts(groups: Iterable[tuple[str, str]]) -> str:
    """The table of counts: a row for each system, of pairs of a system's title and a group."""
    pairs = [*groups]
    lines = [f"| system | {' | '.join(map(str.lower, GROUPS.values()))} | all |"]
    lines.append(f"|---|{'---|' * len(GROUPS)}---|")
    for title in [*dict.fromkeys(title for title, _ in pairs), None]:
        of = [group for t, group in pairs if title in (t, None)]
        cells = [*(of.count(group) for group in GROUPS), len(of)]
        lines.append(f"| {title or 'all'} | {' | '.join(map(str, cells))} |")
    return "\n".join(lines)
