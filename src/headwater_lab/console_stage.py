"""The scenarios that ship, for the console: an entry point of the group `headwater.console`."""

from __future__ import annotations

from collections.abc import Sequence

from headwater_lab.entrants import entrant
from headwater_lab.library import list_shipped, load_scenario, shipped_names
from headwater_lab.replay import PlayedMove, replay


class ShippedScenarios:
    """Plays what ships, and nothing from files."""

    def titles(self) -> Sequence[tuple[str, str]]:
        """Return the name and the title of each."""
        return [(one.name, one.title) for one in list_shipped()]

    def play(self, name: str) -> tuple[Sequence[PlayedMove], Sequence[str]]:
        """Play one to its end by the algorithm that it is written for. An unknown name plays the first."""
        scenario = load_scenario(name if name in shipped_names() else shipped_names()[0])
        played = replay(scenario, entrant(scenario.teller))
        return played.moves, (f"played by {played.algorithm}: {played.remark}", *str(played.verdict).splitlines())
