"""The site that docs/site/build.py makes: its links, its anchors, and how a browser shows it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import browser
import pytest
from manual import needed

pytestmark = pytest.mark.slow
VERSION = version("uop")
ROOT = Path(__file__).parents[1]
MOST_BYTES = 400_000
LOADING = {"script", "img", "iframe", "source", "video", "audio", "embed"}
"""Elements whose `src` a browser loads, as it does the `href` of a link to a style or an icon."""
KINDS = (
    "index", "ops/index", "ops/args", "ops/PERMUTE", "ops/MAX", "ops/CALL", "labels", "decisions",
    "rules", "glossary", "editions", "documents", "stories/index", "stories/matmul", "profiles",
    "judge-your-backend", "command-line", "programs", "python", "compiling", "verdict", "matrix",
    "findings", "benchmarks", "changelog", "contributing", "search",
    "files/conformance/findings/maximum_of_products.py", "files/examples/documents",
)  # fmt: skip
"""A page of each kind."""
WIDTHS = (380, 1200)
OTHER = "0.0.1"
"""A version whose folder stands beside the one that is built."""


class Page(HTMLParser):
    """What a page is linked by, links to, and loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.ids |= {found["id"]} if "id" in found else set()
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag == "link" and found["rel"] not in ("next", "prev", "index", "search"):
            self.loads.append(found["href"])
        if tag in LOADING and "src" in found:
            self.loads.append(found["src"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, with another version in it."""
    for module in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(module, reason="needs the extra docs")
    folder = tmp_path_factory.mktemp("site")
    (folder / OTHER).mkdir()
    (folder / OTHER / "index.html").write_text("of before")
    script = ROOT / "docs" / "site" / "build.py"
    done = subprocess.run(
        [sys.executable, script, folder], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    """Every page of this version, by its path without `.html`."""
    own = site / VERSION
    return {
        path.relative_to(own).with_suffix("").as_posix(): Page(path.read_text("utf-8"))
        for path in own.rglob("*.html")
    }


def test_every_link_leads_somewhere(site: Path, pages: dict[str, Page]) -> None:
    dead = []
    for name, page in pages.items():
        for link in page.links:
            address, fragment = map(unquote, urldefrag(urljoin(f"/{name}.html", link)))
            target = address.lstrip("/").removesuffix(".html")
            if urlsplit(link).scheme in ("http", "https"):
                continue
            if target in pages:
                found = not fragment or fragment in pages[target].ids
            else:
                found = (site / VERSION / target).is_file()
            dead += [] if found else [(name, link)]
    assert dead == []


def test_every_subject_has_its_anchor(pages: dict[str, Page]) -> None:
    anchors = {f"{name}#{anchor}" for name, page in pages.items() for anchor in page.ids}
    assert {n: p for n, p in needed().items() if p not in anchors | pages.keys()} == {}


def test_nothing_is_loaded_from_another_host(site: Path, pages: dict[str, Page]) -> None:
    loads = {load for page in pages.values() for load in page.loads}
    assert loads
    assert {load for load in loads if urlsplit(load).netloc} == set()
    for path in (site / VERSION).rglob("*.css"):
        text = path.read_text("utf-8")
        assert re.findall(r"@import|url\(\s*['\"]?(?:https?:)?//", text) == [], path


def test_pages_are_small(site: Path) -> None:
    sizes = {path.name: path.stat().st_size for path in (site / VERSION).rglob("*.html")}
    assert {name: size for name, size in sizes.items() if size > MOST_BYTES} == {}


def test_the_newest_version_comes_first(site: Path) -> None:
    assert json.loads((site / "versions.json").read_text()) == [VERSION, OTHER]
    assert f"url={VERSION}/" in (site / "index.html").read_text()


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """The address of this version on a server."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/{VERSION}"
        server.shutdown()


def test_pages_fit_the_screen_and_log_nothing(site: Path, address: str) -> None:
    own = site / VERSION
    texts = {kind: (own / f"{kind}.html").read_text("utf-8") for kind in KINDS}
    widths = {f"{kind}-at-{width}": width for kind in KINDS for width in WIDTHS}
    pages = {name: texts[name.rpartition("-at-")[0]] for name in widths}
    found = browser.probed(own, pages, widths, address=address)
    assert found.keys() == widths.keys()
    for name, width in widths.items():
        assert found[name]["width"] <= found[name]["room"] == width, name
        assert found[name]["loaded"] != []
        assert {urlsplit(load).netloc for load in found[name]["loaded"]} == {
            urlsplit(address).netloc
        }


def test_the_switch_lists_the_versions(address: str) -> None:
    listed = re.findall(r'<option value="([^"]*)"', browser.opened(f"{address}/ops/MAX.html"))
    assert listed == [VERSION, OTHER]
