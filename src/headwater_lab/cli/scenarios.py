"""`headwater lab scenarios`."""

from __future__ import annotations

from headwater.cli.options import DebugOption, JsonOption
from headwater.cli.outcome import outcome
from headwater_lab.cli.render import draw_scenarios
from headwater_lab.library import list_shipped


def scenarios(*, as_json: JsonOption = False, debug: DebugOption = False) -> None:
    """List the scenarios that ship: the papers' examples, and where a literal reading fails."""
    with outcome(as_json=as_json, debug=debug) as output:
        output.show(list_shipped(), draw_scenarios)
