"""Consoles for tests: of a warehouse written by hand, and of one that Spark maintains; and a browser for both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from browser import Browser, chromium
from served import Served
from written_project import write_project

import headwater
from debian_packages import installed
from headwater.console.serve import serving


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
