"""Take the pictures of docs/console: the demo is played, and a real Chromium goes through its console.

    .venv/bin/python docs/screenshots.py            # all, about a minute
    .venv/bin/python docs/screenshots.py --large    # only those of a warehouse with 200 views, without Spark

Look at each afterwards: long names, empty places, what is cut off.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "console")]

from browser import Browser, chromium  # noqa: E402 - the tests' own
from written_project import write_project  # noqa: E402 - as above

import headwater  # noqa: E402 - as above
from debian_packages import installed  # noqa: E402 - as above
from headwater.console.serve import serving  # noqa: E402 - as above
from headwater.demo.play import play  # noqa: E402 - as above
from headwater.demo.scenes import ConsoleOpened, DemoEvent  # noqa: E402 - as above

PICTURES = ROOT / "docs" / "console"
_SETTLED_SECONDS = 1.0


def main() -> None:
    """Take the pictures."""
    driver, program = installed("chromedriver", "chromium chromium-driver"), installed("chromium", "chromium")
    if driver is None or program is None:
        sys.exit("Chromium is not installed: apt-get install chromium chromium-driver")
    PICTURES.mkdir(exist_ok=True)
    with chromium(driver, program) as browser:
        browser.resize(1440, 1000)
        if "--large" not in sys.argv:
            _demo(browser)
        _written(browser)


def _demo(browser: Browser) -> None:
    addresses: list[str] = []

    def listen(event: DemoEvent) -> None:
        if isinstance(event, ConsoleOpened):
            addresses.append(event.address)

    play(seconds=8, listener=listen, watch=lambda: _walk(browser, addresses[0]))


def _walk(browser: Browser, address: str) -> None:
    _take(browser, "overview", address)
    _take(browser, "overview-dark", address, is_dark=True)
    browser.open(f"{address}view/high_profit")
    frontier = int(browser.run("return document.querySelector('.strip').getAttribute('aria-valuemax')"))
    browser.click("#rows tbody tr:nth-child(1) td:nth-child(3)")
    browser.wait(lambda: browser.texts("#pane table[data-relation]"), 60)
    browser.point("#rows tr.chosen td:nth-child(4)")
    _keep(browser, "view-trace")
    _take(browser, "view-explain", f"{address}view/high_profit", then="details summary", until="details .sql")
    where = quote("city = 'Oslo' AND store_id = 99")
    _take(browser, "why-not", f"{address}view/high_profit?missing={where}", until="#pane .pane-head")
    _take(browser, "transaction", f"{address}transaction/{frontier // 2}")
    _take(browser, "difference", f"{address}difference?low={frontier - 12}&high={frontier}")
    _take(browser, "source", f"{address}source/shop", then=".right details summary")
    _take(browser, "time", f"{address}view/store_profits?at={frontier // 3}&scale=time", is_dark=True)
    _take(browser, "plan", f"{address}plan", until="[data-loaded=yes]")
    _take(browser, "advice", f"{address}advice", until="[data-loaded=yes]", seconds=120)
    browser.open(f"{address}certificate")
    browser.click("form[method=post] button")
    browser.wait(lambda: browser.texts("#certificate tbody tr"), 180)
    _keep(browser, "certificate")


def _written(browser: Browser) -> None:
    with tempfile.TemporaryDirectory() as folder:
        many = headwater.open(write_project(Path(folder) / "many", more_views=200))
        stopped = headwater.open(write_project(Path(folder) / "stopped", stopped=True))
        with serving(many) as address:
            _take(browser, "two-hundred-views", address)
            _take(browser, "focus", f"{address}?focus=more_041_by_city_and_quarter")
        with serving(stopped) as address:
            _take(browser, "stopped", address)
            _take(browser, "stopped-view", f"{address}view/sold")
            _take(browser, "error", f"{address}view/sould?at=3")
            _take(browser, "empty", f"{address}view/sold?where=id+%3C+0")


def _take(
    browser: Browser,
    name: str,
    address: str,
    *,
    is_dark: bool = False,
    then: str = "",
    until: str = "",
    seconds: float = 60,
) -> None:
    browser.dark(is_dark=is_dark)
    browser.open(address)
    if then:
        browser.click(then)
    if until:
        browser.wait(lambda: browser.texts(until), seconds)
    _keep(browser, name)
    browser.dark(is_dark=False)


def _keep(browser: Browser, name: str) -> None:
    time.sleep(_SETTLED_SECONDS)  # counts arrive, parts are drawn
    browser.picture(PICTURES / f"{name}.png")
    sys.stdout.write(f"{name}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
