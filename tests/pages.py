"""README.md and docs/ as tests see them: each block is run and prints what the page shows.

`python tests/pages.py` runs all pages and writes anew what differs. On a page

- a block with a file name behind its language is that file: ```python worker.py;
- a `console` block is a shell session in the folder of the page, which holds those files and
  `examples/`; a line `...` stands for any lines, `...` in a line for any text;
- a `python` block without a name is run; where a `text` block follows, that is what it prints.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("stories/*.md")))
ELSEWHERE = {"worker-protocol.md", "suite-as-files.md"}
"""Pages whose blocks other tests run: test_worker_examples.py, conformance/test_exported.py."""
RUN = tuple(page for page in PAGES if page.name not in ELSEWHERE)
ANY = "..."
SECONDS = 240
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.+)\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """What stands between two fences: its language, the name of the file that it is, its text."""

    language: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Shown:
    """What a page shows as printed by a command or a program, and what was printed."""

    page: Path
    source: str
    expected: str
    printed: str

    @property
    def holds(self) -> bool:
        lines = (
            r"(?:.*\n)*" if line == ANY else rf"{re.escape(line).replace(re.escape(ANY), '.*')}\n"
            for line in self.expected.splitlines()
        )
        return re.fullmatch("".join(lines), self.printed) is not None

    @property
    def anew(self) -> str:
        """What the page shows then: of lines between `...` those that are most like the old."""
        lines = self.expected.splitlines()
        if self.holds:
            return self.expected
        if ANY not in lines:
            return self.printed
        fresh = self.printed.splitlines()
        kept = [line if line == ANY else _nearest(line, fresh) for line in lines]
        return "\n".join(kept) + "\n"


def blocks(page: Path, language: str = "") -> list[Block]:
    """The blocks of a page, or those in a language."""
    found = [Block(*match) for match in BLOCK.findall(page.read_text("utf-8"))]
    return [block for block in found if language in ("", block.language)]


def prepare(folder: Path) -> None:
    """Make a folder what the root of a clone is, as far as pages use it."""
    shutil.copytree(ROOT / "examples", folder / "examples", dirs_exist_ok=True)
    (folder / "conformance").symlink_to(ROOT / "conformance")


def run_page(page: Path, folder: Path) -> Iterator[Shown]:
    """Run the blocks of a page in order in a prepared folder."""
    for block, after in pairwise([*blocks(page), Block("", "", "")]):
        if block.name:
            (folder / block.name).write_text(block.text, "utf-8")
        elif block.language == "console":
            yield from _session(page, block.text, folder)
        elif block.language == "python":
            shown = after.text if after.language == "text" else ""
            yield Shown(page, block.text, shown, _run([sys.executable, "-c", block.text], folder))


def bash(script: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a script as a user of this environment does; stderr goes where stdout goes."""
    own = Path(sys.executable).parent
    path = os.pathsep.join(
        (*filter(None, (variables.pop("PATH", ""),)), str(own), os.environ["PATH"])
    )
    return subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env={**os.environ, "PYTHONSAFEPATH": "1", **variables, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
    )


def _session(page: Path, text: str, folder: Path) -> Iterator[Shown]:
    """The commands of a block in one shell: `cd` lasts."""
    commands = _COMMAND.findall(text)
    expected = _COMMAND.split(text)[2::2]
    mark = "\x1e"
    script = "".join(f"{command}\nprintf '{mark}'\n" for command in commands)
    printed = bash(script, folder).stdout.split(mark)
    for command, wanted, found in zip(commands, expected, printed, strict=False):
        yield Shown(page, command, wanted, found)


def _run(words: list[str], folder: Path) -> str:
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, encoding="utf-8", check=False
    )
    return done.stdout + done.stderr


def _nearest(line: str, lines: list[str]) -> str:
    return max(lines, key=lambda other: SequenceMatcher(None, line, other).ratio(), default=line)


def refresh(page: Path) -> None:
    """Write a page with what its blocks print now."""
    text = page.read_text("utf-8")
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name))
        for shown in run_page(page, Path(name)):
            if not shown.holds:
                lead = f"$ {shown.source}\n"
                at = text.index(lead) + len(lead) if lead in text else text.index(shown.expected)
                text = text[:at] + text[at:].replace(shown.expected, shown.anew, 1)
    page.write_text(text, "utf-8")


if __name__ == "__main__":
    for one in RUN:
        refresh(one)
