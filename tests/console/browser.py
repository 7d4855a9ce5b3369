"""A real Chromium, driven over the WebDriver protocol by what Python brings along."""

from __future__ import annotations

# ruff: noqa: S310
import base64
import json
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_ARGUMENTS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
)
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_PORT = "was started successfully on port "


class BrowserError(Exception):
    """The driver refused a command."""


@dataclass(frozen=True, slots=True)
class Browser:
    """One window. Elements are named by CSS selectors."""

    session: str

    def open(self, address: str) -> None:
        self._post("url", url=address)

    @property
    def address(self) -> str:
        return str(self._get("url"))

    def run(self, script: str, *arguments: object) -> Any:
        """Run a script in the page, and return what it returns."""
        return self._post("execute/sync", script=script, args=list(arguments))

    def text(self, selector: str) -> str:
        return str(self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector))

    def texts(self, selector: str) -> list[str]:
        script = "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent.trim())"
        return list(self.run(script, selector))

    def click(self, selector: str) -> None:
        self._post(f"element/{self._element(selector)}/click")

    def point(self, selector: str) -> None:
        """Move the pointer onto an element."""
        self._move(selector, [])

    def write(self, selector: str, text: str) -> None:
        self._post(f"element/{self._element(selector)}/value", text=text)

    def press(self, key: str) -> None:
        """Press a key, wherever the focus is."""
        presses = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self._post("actions", actions=[{"type": "key", "id": "keys", "actions": presses}])

    def dark(self, *, is_dark: bool) -> None:
        feature = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self._post("goog/cdp/execute", cmd="Emulation.setEmulatedMedia", params={"features": [feature]})

    def resize(self, width: int, height: int) -> None:
        self._post("window/rect", width=width, height=height)

    def picture(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self._get("screenshot")))

    def wait(self, what: Callable[[], object], seconds: float = 15) -> None:
        deadline = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < deadline, f"it did not happen: {self.text('main')[:600]}"
            time.sleep(0.02)

    def _move(self, selector: str, then: list[dict[str, object]]) -> None:
        origin = {_ELEMENT: self._element(selector)}
        move = {"type": "pointerMove", "duration": 0, "x": 0, "y": 0, "origin": origin}
        self._post("actions", actions=[{"type": "pointer", "id": "mouse", "actions": [move, *then]}])

    def _element(self, selector: str) -> str:
        return str(self._post("element", using="css selector", value=selector)[_ELEMENT])

    def _get(self, path: str) -> Any:
        return _ask(f"{self.session}/{path}", None)

    def _post(self, path: str, **values: object) -> Any:
        return _ask(f"{self.session}/{path}", values)


def _ask(address: str, values: dict[str, Any] | None, method: str | None = None) -> Any:
    body = None if values is None else json.dumps(values).encode()
    request = urllib.request.Request(address, body, {"content-type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        raise BrowserError(error.read().decode()) from None


@contextmanager
def chromium(driver: str, program: str) -> Iterator[Browser]:
    """Give a block a browser with an empty profile. Both end with it."""
    with tempfile.TemporaryDirectory(prefix="headwater-test-", ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert process.stdout is not None
        try:
            line = next(line for line in process.stdout if _PORT in line)
            port = int(line.partition(_PORT)[2].strip(". \n"))
            options = {"binary": program, "args": [*_ARGUMENTS, f"--user-data-dir={profile}", "--window-size=1440,900"]}
            asked = {"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options}}}
            root = f"http://127.0.0.1:{port}/session"
            session = f"{root}/{_ask(root, asked)['sessionId']}"
            try:
                yield Browser(session)
            finally:
                _ask(session, None, "DELETE")
        finally:
            process.terminate()
            process.wait(20)
            process.stdout.close()
