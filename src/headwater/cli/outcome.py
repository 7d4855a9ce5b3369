"""How a verb ends: its result on standard output, or an error, and the exit code 0 done, 1 refused, 2 broke."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import typer

from headwater.cli.json_text import to_json
from headwater.cli.page import Page, print_page
from headwater.errors import HeadwaterError

DONE, REFUSED, BROKE = 0, 1, 2

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Where a verb's result goes, and in which form."""

    as_json: bool

    def show(self, result: Result, draw: Callable[[Result], Page]) -> None:
        """Print a result: as one JSON document, or drawn."""
        if self.as_json:
            sys.stdout.write(json.dumps(to_json(result), indent=2, ensure_ascii=False, allow_nan=False) + "\n")
        else:
            print_page(draw(result))


@contextmanager
def outcome(*, as_json: bool, debug: bool) -> Iterator[Output]:
    """Give a block its output, and turn what it raises into a message and an exit code."""
    if debug:
        logging.basicConfig(stream=sys.stderr, level=logging.DEBUG, format="%(asctime)s %(name)s %(message)s")
    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # what it cannot parse, we refuse in our own words
    try:
        yield Output(as_json=as_json)
    except HeadwaterError as error:
        show_error(error, as_json=as_json)
        raise typer.Exit(REFUSED) from None
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:  # noqa: BLE001 — the one place where whatever broke becomes an exit code
        if debug:
            traceback.print_exc(file=sys.stderr)
        show_error(_broken(error), as_json=as_json)
        raise typer.Exit(BROKE) from None


def _broken(error: Exception) -> HeadwaterError:
    first_line = next(iter(str(error).splitlines()), "")
    return HeadwaterError(
        "something broke that should not have",
        code="HW-999",
        detail=f"{type(error).__name__}: {first_line}" if first_line else type(error).__name__,
        hint="run it again with --debug, and report what it says; nothing half-done is visible to readers",
    )


def show_error(error: HeadwaterError, *, as_json: bool) -> None:
    """Print an error: as one JSON document on standard output, or in words on standard error."""
    if as_json:
        parts = {"summary": error.summary, "detail": error.detail, "hint": error.hint, "code": error.code}
        sys.stdout.write(json.dumps({"error": parts}, indent=2, ensure_ascii=False) + "\n")
    else:
        sys.stderr.write(f"{error}\n")
