"""`headwater prove`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headwater.cli.options import DebugOption, JsonOption
from headwater.cli.outcome import REFUSED, outcome
from headwater.cli.render.proof import draw_proof, draw_proof_line
from headwater.prove.result import ProveResult


def prove(
    *,
    minutes: Annotated[float, typer.Option("--minutes", min=0.1, help="How long to go on.")] = 4.0,
    views: Annotated[
        int | None,
        typer.Option("--views", min=1, help="End when this many views were accepted.", show_default="no limit"),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="What views and histories are drawn from.")] = 1,
    replay: Annotated[
        Path | None, typer.Option("--replay", help="Play the trial in this file instead.", show_default="none")
    ] = None,
    to: Annotated[Path, typer.Option("--to", help="The folder for trials that go wrong.")] = Path("wrong-states"),
    record: Annotated[
        Path | None,
        typer.Option("--record", help="Go on where this file's runs ended, and add to it.", show_default="none"),
    ] = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Maintain random views over random histories, and compare every state with its SQL.

    Every construct of the SQL reference, and every pair of them, is put into views over small tables full of NULLs,
    duplicates and ties. The code that maintains your views maintains them, on Spark; the views' SQL is run at every
    tick in DuckDB, and on Spark where the two differ. A state that is wrong is written to a file that `--replay` plays.
    No database is needed. With `--record`, runs add up, also those of several processes at once with different seeds.
    The exit code is 1 if a state was wrong, or if Headwater itself failed over a view.
    """
    with outcome(as_json=as_json, debug=debug) as output:

        def report(found: ProveResult) -> None:
            if not as_json:
                typer.echo(draw_proof_line(found), err=True)

        from headwater.prove import proof  # noqa: PLC0415 - it brings Spark

        result = proof.prove(
            seconds=minutes * 60, view_limit=views, seed=seed, replay=replay, to=to, record=record, report=report
        )
    output.show(result, draw_proof)
    if not result.is_proved:
        raise typer.Exit(REFUSED)
