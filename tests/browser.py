"""Opens pages in headless Chromium, in frames of some widths, and returns what a script says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from typing import Any

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
SECONDS = 100
OUTER = """<!doctype html><pre id="probe"></pre><script>
const found = {};
addEventListener('message', e => {
  found[e.data[0]] = e.data[1];
  document.querySelector('#probe').innerText = JSON.stringify(found);
});
</script>"""
PROBE = """<script>
addEventListener('load', () => {
  const all = q => [...document.querySelectorAll(q)];
  const ids = all('[id]').map(e => e.id);
  const found = {
    width: document.documentElement.scrollWidth, room: innerWidth,
    loaded: performance.getEntriesByType('resource').map(e => e.name),
    twice: ids.filter((id, k) => ids.indexOf(id) != k),
    dead: all('a[href^="#"]').map(e => e.hash.slice(1)).filter(id => !ids.includes(id)),
    untitled: all('table').filter(t => !t.caption || !t.tHead).length,
    unscoped: all('th:not([scope])').length, unnamed: all('[role=img]:not([aria-label])').length,
    main: all('main').length, title: document.title, lang: document.documentElement.lang,
    EXTRA
  };
  parent.postMessage([name, found], '*');
});
</script>"""


def probed(
    folder: Path,
    pages: Mapping[str, str],
    widths: Mapping[str, int],
    extra: str = "",
    address: str = "",
) -> dict[str, Any]:
    """What a browser says of pages by name. It must log nothing. Skips without a browser.

    `extra` are more entries of the object that the script returns, in JavaScript. `address` is that
    of the folder on a server, for pages that load from it.
    """
    text = OUTER
    for name, page in pages.items():
        (folder / f"{name}.html").write_text(page + PROBE.replace("EXTRA", extra))
        style = f"border: 0; width: {widths[name]}px; height: 800px"
        text += f'<iframe name="{name}" src="{name}.html" style="{style}"></iframe>'
    (folder / "all.html").write_text(text)
    shown = opened(f"{address or folder.as_uri()}/all.html")
    found = re.search(r'<pre id="probe">(.+?)</pre>', shown, re.DOTALL)
    assert found is not None, shown
    result: dict[str, Any] = json.loads(unescape(found[1]))
    return result


def opened(address: str) -> str:
    """The HTML of a page after its scripts. It must log nothing. Skips without a browser."""
    if BROWSER is None:
        pytest.skip("no chromium (Debian package chromium)")
    with tempfile.TemporaryDirectory() as profile:
        options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
        options += ["--enable-logging=stderr", "--virtual-time-budget=10000", "--dump-dom"]
        command = [BROWSER, *options, address]
        run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert [line for line in run.stderr.splitlines() if "CONSOLE" in line] == []
    return run.stdout
