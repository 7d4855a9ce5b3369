"""What happened in a world, told in lines: what was received, asked, answered, corrected and installed.

A line names occurrences by their aliases and shows the columns that the view needs of them; `+` and `-` are signs of a
change, `(7, 8)[2]` is a row that is there twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from headwater.maintenance.published.messages import Found, QueryPart
from headwater.model.relation import RelationName
from headwater.views.steps.join import JoinView
from headwater_lab.in_memory.bag import InMemoryBag, InMemoryKeys, Row
from headwater_lab.rows_text import NOTHING, format_bag, format_signed
from headwater_lab.world import Happening, Installed, Rebased, Received, Sent, Served


def tell(view: JoinView, event: Happening, before: Mapping[Row, int]) -> tuple[str, ...]:
    """Return the lines that describe an event, or none if its move says it. `before` is the view before it."""
    match event:
        case Received():
            return (f"tick {event.tick} is {event.source}@{event.version}",)
        case Sent():
            return (f"ask {event.query.source}{' |'.join(_tell_part(part) for part in event.query.parts)}",)
        case Served():
            return (f"answer of {event.source}: {_tell_found(view, event.found)}",)
        case Rebased():
            return (f"rebase {_alias(view, event.relation)} to tick {event.tick}: {_tell_correction(event)}",)
        case Installed():
            gained = Counter(event.state)
            gained.subtract(Counter(before))
            return (
                f"install tick {event.upto}: {format_signed(gained.items())}",
                f"view: {format_bag(event.state)}",
            )
        case _:
            return ()


def tell_all(view: JoinView, events: Sequence[Happening], before: Mapping[Row, int]) -> Iterator[str]:
    """Yield the lines that describe events, one after another. `before` is the view before them."""
    for event in events:
        yield from tell(view, event, before)
        if isinstance(event, Installed):
            before = event.state


def _tell_part(part: QueryPart[InMemoryBag]) -> str:
    carried = [f"{alias} {format_signed(_rows(bag))}" for alias, bag in part.carried.items()]
    if part.keys is not None:
        assert isinstance(part.keys, InMemoryKeys), "the lab works in memory"
        carried.append(f"{', '.join(part.steps[0].columns)} = {format_bag(dict.fromkeys(part.keys.values, 1))}")
    with_rows = f" with {', '.join(carried)}" if carried else ""
    return f"{with_rows}: {', '.join(step.alias for step in part.steps)}"


def _tell_found(view: JoinView, parts: Found[InMemoryBag]) -> str:
    found = [
        f"{_alias(view, request.relation)} {format_bag(dict(_rows(rows)))}" for part in parts for request, rows in part
    ]
    return "; ".join(found) or NOTHING


def _tell_correction(event: Rebased) -> str:
    back = {row: count for row, count in event.correction.items() if count > 0}
    out = {row: -count for row, count in event.correction.items() if count < 0}
    said = [f"put back {format_bag(back)}"] if back else []
    said += [f"take out {format_bag(out)}"] if out else []
    return ", ".join(said)


def _rows(bag: InMemoryBag) -> list[tuple[Row, int]]:
    total: Counter[Row] = Counter()
    for (_, row), count in bag.entries.items():
        total[row] += count
    return list(total.items())


def _alias(view: JoinView, relation: RelationName) -> str:
    """Return the alias under which a relation is read, or its name if there are several."""
    aliases = [occurrence.alias for occurrence in view.occurrences if occurrence.relation.name == relation]
    return aliases[0] if len(aliases) == 1 else str(relation)
