"""The open project of a verb, with the verb's output and progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

import headwater
from headwater.cli.outcome import OutputForm, outcome
from headwater.cli.render.progress import progress
from headwater.observe.events import Listener

if TYPE_CHECKING:  # a verb has to say something within a second: what the others need is not imported
    from headwater.api.session import Headwater


@contextmanager
def opened(context: typer.Context, path: Path, *, as_json: bool, debug: bool) -> Iterator[tuple[OutputForm, Headwater]]:
    """Open a project for a block, show what happens there, and turn what it raises into a message and an exit code."""
    with (
        outcome(as_json=as_json, debug=debug) as output,
        progress(as_json=as_json, debug=debug) as listener,
        open_project(context, path, listener) as project,
    ):
        yield output, project


def open_project(context: typer.Context, path: Path, listener: Listener) -> Headwater:
    """Return the open project: by the opener that a test put into the context, or else the real one."""
    opener: Callable[[Path, Listener], Headwater] | None = context.obj
    return headwater.open(path, listener=listener) if opener is None else opener(path, listener)
