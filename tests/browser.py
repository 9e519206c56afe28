"""Opens pages in headless Chromium: in frames of some widths, or one in a tab that is driven."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
KEYS = {"Tab": 9, "End": 35, "Home": 36, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
"""The codes of keys."""
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


@contextmanager
def tab(folder: Path) -> Iterator[Tab]:
    """A tab with a profile in this folder, until the end of the block."""
    opened = Tab(folder / "profile")
    try:
        yield opened
    finally:
        opened.close()


class Tab:
    """A tab of headless Chromium, driven through a pipe. Skips without a browser.

    `logged` is what its console and its policy said.
    """

    def __init__(self, folder: Path) -> None:
        if BROWSER is None:
            pytest.skip("no chromium (Debian package chromium)")
        (read, self._out), (self._in, write) = os.pipe(), os.pipe()
        options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}"]
        # The browser reads 3 and writes 4.
        line = f'exec "$@" 3<&{read} 4>&{write}'
        command = ["bash", "-c", line, "bash", BROWSER, *options, "--remote-debugging-pipe"]
        self._process = subprocess.Popen(
            command, pass_fds=[read, write], stderr=subprocess.DEVNULL, start_new_session=True
        )
        os.close(read)
        os.close(write)
        self.logged: list[str] = []
        self.requests: list[str] = []
        self._heard, self._number, self._session = b"", 0, ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """What the browser answers to a command of its protocol."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        session = {"sessionId": self._session} if self._session else {}
        os.write(self._out, json.dumps(message | session).encode() + b"\0")
        while (heard := self._next()).get("id") != self._number:
            self._note(heard)
        assert "error" not in heard, heard
        result: dict[str, Any] = heard["result"]
        return result

    def size(self, width: int, scheme: str = "light") -> None:
        """The width of the window, and light or dark."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def open(self, address: str) -> None:
        """Load a page anew, also where only the fragment differs."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=address)
        self.until("document.readyState == 'complete'")

    def say(self, script: str) -> Any:
        """The value of an expression in the page."""
        found = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + 60
        while not self.say(f"Boolean({condition})"):
            assert time.monotonic() < deadline, (condition, self.logged)
            time.sleep(0.02)

    def press(self, key: str) -> None:
        """Press a key in what has the focus."""
        for kind in ("keyDown", "keyUp"):
            event = {"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": KEYS[key]}
            self.call("Input.dispatchKeyEvent", **event)

    def picture(self, path: Path) -> None:
        """Write a picture of the whole page."""
        found = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(b64decode(found["data"]))

    def close(self) -> None:
        """End the browser."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._heard:
            part = os.read(self._in, 1 << 16)
            assert part, "the browser has ended"
            self._heard += part
        first, _, self._heard = self._heard.partition(b"\0")
        heard: dict[str, Any] = json.loads(first)
        return heard

    def _note(self, heard: dict[str, Any]) -> None:
        if heard["method"] in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
            self.logged.append(json.dumps(heard["params"]))
        elif heard["method"] == "Log.entryAdded":
            self.logged.append(heard["params"]["entry"]["text"])
        elif heard["method"] == "Network.requestWillBeSent":
            self.requests.append(heard["params"]["request"]["url"])
