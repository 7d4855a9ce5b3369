"""The program: what it says of itself, and how it ends."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Annotated, NoReturn

import typer
from typer._completion_classes import completion_init

from headwater.cli.outcome import REFUSED, show_error
from headwater.errors import HeadwaterError

COMPLETION = "_HEADWATER_COMPLETE"
"""The environment's variable by which a shell asks what may come next."""


def new_app() -> typer.Typer:
    """Return the program without its verbs."""
    app = typer.Typer(
        name="headwater",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"max_content_width": 120, "help_option_names": ["-h", "--help"]},
    )
    app.callback()(headwater)
    return app


def add_verb(app: typer.Typer, verb: Callable[..., None], settings: dict[str, object] | None = None) -> None:
    """Give a program a verb, and Typer's settings for its arguments.

    The first sentence of its help is given as it is: Typer would cut it off in the list of verbs.
    """
    first, *_ = inspect.cleandoc(verb.__doc__ or "").split("\n\n")
    app.command(short_help=" ".join(first.split()), context_settings=settings)(verb)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"headwater {version('headwater')}")
        raise typer.Exit


def headwater(
    *,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Keep SQL views over several independent databases exact on Spark."""
    del show_version


def run_program(app: typer.Typer, arguments: list[str]) -> NoReturn:
    """Run the program: exit 0 done, 1 refused, 2 broke. A mistyped command line is refused."""
    if COMPLETION in os.environ:
        completion_init()  # the shells that Typer knows
    try:
        code = app(arguments, standalone_mode=False, prog_name="headwater")
    except typer.Abort:
        sys.exit(REFUSED)
    except typer.TyperException as error:
        mistyped = HeadwaterError(
            error.format_message(), code="HW-100", hint="see `headwater --help`, or `headwater VERB --help`"
        )
        show_error(mistyped, as_json="--json" in arguments)
        sys.exit(REFUSED)
    sys.exit(code if isinstance(code, int) else 0)
