"""The command line's verbs in the order a person meets them, and the program's entry point."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from headwater.cli.advise import advise
from headwater.cli.analyze import analyze
from headwater.cli.check import check
from headwater.cli.demo import demo
from headwater.cli.explain import explain
from headwater.cli.history import history
from headwater.cli.impact import impact
from headwater.cli.init import init
from headwater.cli.lab import lab
from headwater.cli.outcome import REFUSED, show_error
from headwater.cli.plan import plan
from headwater.cli.prove import prove
from headwater.cli.query import query
from headwater.cli.refresh import refresh
from headwater.cli.release import release
from headwater.cli.run import run
from headwater.cli.status import status
from headwater.cli.teardown import teardown
from headwater.cli.trace import trace
from headwater.cli.why_not import why_not
from headwater.errors import HeadwaterError

VERBS = (
    init,
    plan,
    run,
    status,
    query,
    trace,
    impact,
    why_not,
    history,
    explain,
    check,
    advise,
    analyze,
    refresh,
    release,
    teardown,
    demo,
    prove,
)

app = typer.Typer(
    name="headwater",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"max_content_width": 120, "help_option_names": ["-h", "--help"]},
)
for verb in VERBS:
    app.command()(verb)
app.add_typer(lab)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"headwater {version('headwater')}")
        raise typer.Exit


@app.callback()
def headwater(
    *,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Keep SQL views over several independent databases exact on Spark."""
    del show_version


def main() -> None:
    """Run the program: exit 0 done, 1 refused, 2 broke. A mistyped command line is refused."""
    arguments = sys.argv[1:] or ["--help"]
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
