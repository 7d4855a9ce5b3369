"""`headwater run`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated

import typer

from headwater.cli.opened import open_project
from headwater.cli.options import HERE, DebugOption, JsonOption, ProjectOption
from headwater.cli.outcome import REFUSED, may_ask, outcome
from headwater.cli.render.progress import LogForm, progress
from headwater.cli.render.verbs import draw_run
from headwater.console.serve import LOCAL, PORT, require_packages, serving
from headwater.errors import ConfirmationNeeded
from headwater.observe.events import Listener, fan_out, ignore_event
from headwater.observe.metrics import require_metrics_package
from headwater.project.plan_result import RunResult


def run(
    context: typer.Context,
    *,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="Stop once everything the sources had committed is in the views.")
    ] = False,
    ticks: Annotated[int | None, typer.Option("--ticks", min=1, help="Stop after this many ticks.")] = None,
    rebuild: Annotated[
        list[str] | None, typer.Option("--rebuild", metavar="VIEW", help="Compute this view again; may be repeated.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask before the history of views is deleted, now or later.")
    ] = False,
    fail_fast: Annotated[
        bool,
        typer.Option(
            "--fail-fast",
            help="End with an error as soon as one source is lost for good; without it the views of the other sources "
            "go on, and only the loss of all ends it.",
        ),
    ] = False,
    ui: Annotated[
        bool,
        typer.Option(
            "--ui", help="Show it in the console meanwhile, as `headwater ui` does: pip install headwater[ui]."
        ),
    ] = False,
    log_form: Annotated[
        LogForm,
        typer.Option("--log-format", help="json: every event as one line on standard error, for log collectors."),
    ] = LogForm.TEXT,
    metrics: Annotated[
        int | None,
        typer.Option(
            "--metrics",
            metavar="PORT",
            min=0,
            max=65535,
            help="Serve /metrics to programs of this machine, for Prometheus: pip install headwater[metrics].",
        ),
    ] = None,
    project: ProjectOption = HERE,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Do what `plan` shows, then keep the views up to date.

    Dropping or changing a view deletes the states that could be read of it so far. If there are several, `run` asks
    first; without a terminal, it needs --yes.
    """

    def maintain(agreed: bool | tuple[str, ...]) -> RunResult:
        with (
            progress(as_json=as_json, debug=debug, log_form=log_form) as listener,
            _counted(context, project, metrics, listener) as counting,
            open_project(context, project, counting) as headwater,
            _shown(context, project) if ui else nullcontext(),
        ):
            return headwater.run(
                until_idle=until_idle, ticks=ticks, rebuild=tuple(rebuild or ()), yes=agreed, fail_fast=fail_fast
            )

    with outcome(as_json=as_json, debug=debug) as output:
        if ui:
            require_packages()
        if metrics is not None:
            require_metrics_package()
        try:
            result = maintain(yes)
        except ConfirmationNeeded as needed:
            if not may_ask(as_json=as_json):
                raise
            typer.echo(f"{needed.summary}\n{needed.detail}", err=True)
            if not typer.confirm("go on?", err=True):
                typer.echo("nothing was changed", err=True)
                raise typer.Exit(REFUSED) from None
            result = maintain(needed.views)
        output.show(result, draw_run)


@contextmanager
def _counted(context: typer.Context, project: Path, port: int | None, listener: Listener) -> Iterator[Listener]:
    """Serve metrics beside a block, and say where. The block's listener is to be called with what happens."""
    if port is None:
        yield listener
        return
    from headwater.api.metrics_endpoint import metrics_of, serving_metrics  # noqa: PLC0415 - for those who ask for it

    with open_project(context, project, ignore_event) as measured:
        counts = metrics_of(measured)
        with serving_metrics(counts, port) as address:
            typer.echo(f"metrics are at {address}", err=True)
            yield fan_out(listener, counts)


@contextmanager
def _shown(context: typer.Context, project: Path) -> Iterator[None]:
    """Serve the console beside a block, and say where."""
    with open_project(context, project, ignore_event) as shown, serving(shown, LOCAL, PORT) as address:
        typer.echo(f"the console is at {address}", err=True)
        yield
