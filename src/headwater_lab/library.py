"""The scenarios that ship: the papers' own examples, and the interleavings in which a literal reading fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headwater.model.guarantee import Guarantee
from headwater_lab.errors import InvalidScenario
from headwater_lab.scenario import Scenario
from headwater_lab.scenario_text import parse_scenario

FOLDER = Path(__file__).parent / "scenarios"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipped:
    """A scenario that ships: its name, what it is about, and what is expected of each algorithm."""

    name: str
    title: str
    expected: Mapping[str, Guarantee]


def list_shipped() -> tuple[Shipped, ...]:
    """Return every scenario that ships."""
    scenarios = [load_scenario(name) for name in shipped_names()]
    return tuple(Shipped(name=one.name, title=one.title, expected=one.expected) for one in scenarios)


def shipped_names() -> tuple[str, ...]:
    """Return the names of the scenarios that ship."""
    return tuple(sorted(file.stem for file in FOLDER.glob("*.txt")))


def load_scenario(file: str) -> Scenario:
    """Return the scenario in a file, or the one that ships under that name."""
    path = Path(file)
    if not path.is_file():
        path = FOLDER / f"{file.removesuffix('.txt')}.txt"
    if not path.is_file():
        raise InvalidScenario(
            f'there is no scenario "{file}"',
            code="HW-716",
            detail=f"it is no file, and those that ship are {', '.join(shipped_names())}",
            hint="`headwater lab scenarios` says what each is about",
        )
    return parse_scenario(path.read_text(encoding="utf-8"), name=path.stem)
