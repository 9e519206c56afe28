"""Builds the site: `python docs/site/build.py` writes site/VERSION; another folder may be named.

The pages stand where a reader of the repository looks for them. Here they are copied to their
places on the site, with their links, and a source file that a page links to becomes a page.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from packaging.version import Version
from sphinx.cmd.build import main as sphinx_build

ROOT = Path(__file__).parents[2]
HERE = ROOT / "docs" / "site"
MOVED = {
    "README.md": "README.md",
    "docs/site/index.md": "index.md",
    "docs/ops/README.md": "ops/index.md",
    "docs/stories/README.md": "stories/index.md",
    "spec/DECISIONS.md": "decisions.md",
    "conformance/findings/README.md": "findings.md",
    "benchmarks/README.md": "benchmarks.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""Places on the site by path in the repository; the other pages of docs/ keep theirs."""
BELOW = "\n```{toctree}\n:glob:\n:hidden:\n\n*\n```\n"
TOCTREES = {"ops/index.md": BELOW, "stories/index.md": BELOW}
"""Lists of the pages below a page that the repository shows without."""
BLOCK_OR_LINK = re.compile(
    r"^(`{3,}|~{3,}).*?^\1$|(?<=\]\()(?![a-z]+:)[^)#\s]+", re.MULTILINE | re.DOTALL
)
FILES = "files"
LEXERS = {".py": "python", ".toml": "toml", ".json": "json", ".md": "md", ".uop": "text"}
CODE_PAGE = "---\norphan: true\nnosearch: true\n---\n# {name}\n\n{body}\n"
"""A source file: the search would find words of a page in many of them."""
REDIRECT = '<!doctype html><title>uop</title><meta http-equiv="refresh" content="0; url={}/">\n'


def place(path: Path) -> Path:
    """The place on the site of a file of the repository, both relative to their roots."""
    name = path.as_posix()
    if name in MOVED:
        return Path(MOVED[name])
    if path.suffix in (".md", ".svg") and path.parts[0] == "docs":
        return path.relative_to("docs")
    return Path(FILES, f"{name}.md")


class Stage:
    """Copies pages and what they link to into a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.copied: set[Path] = set()

    def copy(self, path: Path) -> Path:
        """Copy a file, a folder as the list of its files; returns its place."""
        there = place(path)
        if path not in self.copied:
            self.copied.add(path)
            target = self.folder / there
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(self.text(path, there), "utf-8")
        return there

    def text(self, path: Path, there: Path) -> str:
        """What stands at a place: a page with its links moved, or a source file in a block."""

        def moved(found: re.Match[str]) -> str:
            return found[0] if found[1] else self.link(path.parent / found[0], there)

        full = ROOT / path
        if full.is_dir():
            inner = sorted(p.relative_to(ROOT) for p in full.iterdir() if p.suffix in LEXERS)
            body = "\n".join(f"- [{p.name}]({self.link(p, there)})" for p in inner)
            return CODE_PAGE.format(name=path.as_posix(), body=body)
        text = full.read_text("utf-8")
        if there.suffix == path.suffix and there.parts[0] != FILES:
            return BLOCK_OR_LINK.sub(moved, text) + TOCTREES.get(there.as_posix(), "")
        body = f"``````{LEXERS.get(path.suffix, 'text')}\n{text.rstrip()}\n``````"
        return CODE_PAGE.format(name=path.as_posix(), body=body)

    def link(self, target: Path, there: Path) -> str:
        """A link from a place on the site to a file, which is copied too."""
        return os.path.relpath(self.copy(Path(os.path.normpath(target))), there.parent)


def build(site: Path) -> int:
    """Write the pages of this version, the list of versions, and the way to the newest."""
    own = version("uop")
    # A page that is gone would stay.
    shutil.rmtree(site / own, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(Path(folder, "pages"))
        for path in (*map(Path, MOVED), *(ROOT / "docs").rglob("*.md")):
            stage.copy(path.relative_to(ROOT) if path.is_absolute() else path)
        options = ["-q", "-W", "--keep-going", "-c", str(HERE), "-d", f"{folder}/doctrees"]
        status = sphinx_build([*options, str(stage.folder), str(site / own)])
    versions = sorted((p.parent.name for p in site.glob("*/index.html")), key=Version, reverse=True)
    (site / "versions.json").write_text(json.dumps(versions) + "\n", "utf-8")
    (site / "index.html").write_text(REDIRECT.format(versions[0]), "utf-8")
    return status


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site"))
