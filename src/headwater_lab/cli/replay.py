"""`headwater lab replay`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from headwater.cli.options import DebugOption, JsonOption
from headwater.cli.outcome import BROKE, outcome
from headwater.cli.render.page import print_page
from headwater.errors import HeadwaterError
from headwater_lab.cli.render import draw_move, draw_opening, draw_replay, draw_standings, draw_verdict
from headwater_lab.entrants import entrant
from headwater_lab.library import load_scenario
from headwater_lab.replay import ReplayResult, replay_all


def replay(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A scenario's file, or the name of one that ships.")],
    *,
    algorithm: Annotated[
        str | None,
        typer.Option(
            "--algorithm",
            help="The algorithm that plays it. Default: the one that the scenario is written for.",
            metavar="NAME",
        ),
    ] = None,
    step: Annotated[bool, typer.Option("--step", help="Wait for Enter before each move.")] = False,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Play a scenario move by move: what is committed, asked, answered, corrected and installed, and the verdict.

    The exit code is 2 if it went otherwise than the scenario expects.
    """
    with outcome(as_json=as_json, debug=debug) as output:
        if step and as_json:
            raise HeadwaterError(
                "--step and --json exclude each other", code="HW-717", hint="leave one of them out: JSON has every move"
            )
        scenario = load_scenario(file)
        result = replay_all(scenario, entrant(algorithm or scenario.teller), others=algorithm is None)
        if step:
            _walk_through(result)
        else:
            output.show(result, draw_replay)
    if not result.as_expected:
        raise typer.Exit(BROKE)


def _walk_through(result: ReplayResult) -> None:
    """Show one move after another, each when Enter is pressed."""
    print_page(draw_opening(result.replay))
    if sys.stdin.isatty():
        sys.stderr.write("Enter plays the next move\n")
    for number, move in enumerate(result.replay.moves, start=1):
        sys.stdout.flush()
        sys.stdin.readline()
        print_page(draw_move(number, move))
    print_page(draw_verdict(result.replay))
    print_page(draw_standings(result.others))
