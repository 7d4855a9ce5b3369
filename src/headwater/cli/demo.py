"""`headwater demo`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from headwater.cli.options import DebugOption, JsonOption
from headwater.cli.outcome import BROKE, outcome
from headwater.cli.render.demo_stage import stage
from headwater.cli.render.verbs import draw_demo
from headwater.console.serve import require_packages as require_console


def demo(
    *,
    seconds: Annotated[int, typer.Option("--seconds", min=1, help="How long the writers write.")] = 20,
    ui: Annotated[
        bool, typer.Option("--ui", help="Show it in the console while it plays, and stay until you press Enter.")
    ] = False,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Play a department store on three embedded databases.

    Several writers change all three servers at once, the views follow, and at the end every state is recomputed. The
    exit code is 2 if one of them was wrong. Nothing is left running.
    """
    with outcome(as_json=as_json, debug=debug) as output:
        from headwater.demo.needed import require_packages  # noqa: PLC0415 - as below

        require_packages()
        if ui:
            require_console()
        from headwater.demo import play  # noqa: PLC0415 - it brings servers and Spark, and needs these packages

        with stage(as_json=as_json, debug=debug) as listener:
            result = play.play(seconds=seconds, listener=listener, watch=_wait_for_enter if ui else None)
    output.show(result, draw_demo)
    if not result.check.kept:
        raise typer.Exit(BROKE)


def _wait_for_enter() -> None:
    """Wait until a person has seen enough. Without a terminal, until standard input ends."""
    sys.stderr.write("the writers have stopped; look around in the console, and press Enter to recompute every state\n")
    sys.stdin.readline()
