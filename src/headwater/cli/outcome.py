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

from headwater.cli.render.json_text import to_json
from headwater.cli.render.page import Page, print_in_place, print_page
from headwater.errors import HeadwaterError, SeveralErrors

DONE, REFUSED, BROKE = 0, 1, 2

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputForm:
    """Where a verb's result goes, and in which form."""

    as_json: bool

    def show(self, result: Result, draw: Callable[[Result], Page]) -> None:
        """Print a result: as one JSON document, or drawn."""
        if self.as_json:
            sys.stdout.write(json.dumps(to_json(result), indent=2, ensure_ascii=False, allow_nan=False) + "\n")
        else:
            print_page(draw(result))

    def show_each(self, results: Iterator[Result], draw: Callable[[Result], Page]) -> None:
        """Print results as they come, until Ctrl-C: each in place of the one before, or as one line of JSON."""
        try:
            if self.as_json:
                for result in results:
                    sys.stdout.write(json.dumps(to_json(result), ensure_ascii=False, allow_nan=False) + "\n")
                    sys.stdout.flush()
            else:
                print_in_place(draw(result) for result in results)
        except KeyboardInterrupt:
            return


@contextmanager
def outcome(*, as_json: bool, debug: bool) -> Iterator[OutputForm]:
    """Give a block its output, and turn what it raises into a message and an exit code."""
    if debug:
        logging.basicConfig(stream=sys.stderr, level=logging.DEBUG, format="%(asctime)s %(name)s %(message)s")
    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # what it cannot parse, we refuse in our own words
    try:
        yield OutputForm(as_json=as_json)
    except HeadwaterError as error:
        show_error(error, as_json=as_json)
        raise typer.Exit(REFUSED) from None
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:  # noqa: BLE001 — the one place where whatever broke becomes an exit code
        if debug:
            traceback.print_exc(file=sys.stderr)
        told = _about_a_file(error)
        show_error(told or _broken(error), as_json=as_json)
        raise typer.Exit(REFUSED if told else BROKE) from None


def may_ask(*, as_json: bool) -> bool:
    """Tell whether there is a terminal to ask at."""
    return sys.stdin.isatty() and not as_json


def _about_a_file(error: Exception) -> HeadwaterError | None:
    """Return what to say of a file that cannot be read or written, if that is what went wrong."""
    from headwater.storage.storage_errors import storage_error  # noqa: PLC0415 - brings Arrow and Delta along

    return storage_error(error)


def _broken(error: Exception) -> HeadwaterError:
    first_line = next(iter(str(error).splitlines()), "")
    return HeadwaterError(
        "something broke that should not have",
        code="HW-999",
        detail=f"{type(error).__name__}: {first_line}" if first_line else type(error).__name__,
        hint="run it again with --debug, and report what it says; nothing half-done is visible to readers",
    )


def _parts(error: HeadwaterError) -> dict[str, str]:
    return {"summary": error.summary, "detail": error.detail, "hint": error.hint, "code": error.code}


def show_error(error: HeadwaterError, *, as_json: bool) -> None:
    """Print an error: as one JSON document on standard output, or in words on standard error."""
    if as_json:
        told: dict[str, object] = {"error": _parts(error)}
        if isinstance(error, SeveralErrors):
            told["errors"] = [_parts(one) for one in error.errors]
        sys.stdout.write(json.dumps(told, indent=2, ensure_ascii=False) + "\n")
    else:
        sys.stderr.write(f"{error}\n")
