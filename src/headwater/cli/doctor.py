"""`headwater doctor`."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.opened import opened
from headwater.cli.options import HERE, DebugOption, JsonOption, ProjectOption
from headwater.cli.outcome import REFUSED
from headwater.cli.render.page import Grid, Line, Page
from headwater.observe.findings import DoctorResult, Fitness

_STYLES = {Fitness.OK: "green", Fitness.WARNING: "yellow", Fitness.ERROR: "red"}


def doctor(
    context: typer.Context,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Do not start Spark, which takes seconds.")] = False,
    project: ProjectOption = HERE,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Look at all that `run` needs, and say what to do: Java, Spark, memory, disk, sources and their rights, warehouse.

    It changes nothing, and can be asked while a maintainer runs. The exit code is 1 if something stands in the way.
    """
    with opened(context, project, as_json=as_json, debug=debug) as (output, headwater):
        result = headwater.doctor(quick=quick)
    output.show(result, _drawn)
    if not result.is_healthy:
        raise typer.Exit(REFUSED)


def _drawn(result: DoctorResult) -> Page:
    rows = tuple((one.health.value, one.subject, one.found) for one in result.findings)
    remedies = [
        Line(text=f"{one.subject}{f' [{one.code}]' if one.code else ''}: {one.remedy}", style=_STYLES[one.health])
        for one in result.findings
        if one.remedy
    ]
    bad = sum(one.health is Fitness.ERROR for one in result.findings)
    ending = "nothing stands in the way of `headwater run`" if not bad else f"{bad} of these stand in the way"
    return [
        Grid(headings=("", "what", "found"), rows=rows),
        *([Line(text=""), Line(text="what to do", style="bold"), *remedies] if remedies else []),
        Line(text=ending, style=_STYLES[Fitness.ERROR if bad else Fitness.OK]),
    ]
