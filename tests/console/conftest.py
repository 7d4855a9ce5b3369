"""Consoles for tests: of a warehouse written by hand, and of one that Spark maintains; and a browser for both."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from browser import Browser, chromium
from debian_packages import installed
from written_project import write_project

import headwater
from headwater.api.session import Headwater
from headwater.console.serve import serving


@dataclass(frozen=True, slots=True)
class Served:
    """A project, and where its console is."""

    project: Headwater
    address: str

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        """Return the status and the text of an answer."""
        request = urllib.request.Request(self.address.rstrip("/") + path, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The console of a warehouse that no maintainer runs on, without Spark and without sources."""
    project = headwater.open(write_project(tmp_path_factory.mktemp("console") / "written"))
    with serving(project) as address:
        yield Served(project, address)


@pytest.fixture
def serve_written(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Return a function that serves another such warehouse."""
    with ExitStack() as stack:

        def serve(**asked: object) -> Served:
            project = headwater.open(write_project(tmp_path / "own", **asked))  # type: ignore[arg-type]
            return Served(project, stack.enter_context(serving(project)))

        yield serve


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    driver, program = installed("chromedriver", "chromium chromium-driver"), installed("chromium", "chromium")
    if driver is None or program is None:
        pytest.skip("Chromium is not installed: apt-get install chromium chromium-driver")
    with chromium(driver, program) as opened:
        yield opened
