"""Which ways to ask less can ever apply to a view, and why not: what `explain` says of it.

They belong to the algorithms by version numbers (paper 001) and to `maintenance = "runtime"`. Each depends only
on the view's shape and on what its sources enforce, so it can be said before anything happens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headwater.maintenance.published.irrelevant import references
from headwater.maintenance.published.self_maintenance import shows_whole_rows
from headwater.maintenance.published.terms import steps_to
from headwater.views.steps.join import JoinView, Occurrence
from headwater.views.steps.keys import key_outputs, read_columns, shown_columns, shown_places


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimisation:
    """One way to ask less, at one occurrence or for the whole view: whether it can apply, and why."""

    name: str
    of: str
    applies: bool
    why: str


def optimisations(view: JoinView) -> tuple[Optimisation, ...]:
    """Return all of them, those of one kind together."""
    return (
        *_deletes_by_key(view),
        *_modified_in_place(view),
        *_found_in_view(view),
        *_irrelevant(view),
        *_asked_together(view),
    )


def _deletes_by_key(view: JoinView) -> Iterator[Optimisation]:
    for one in view.occurrences:
        lacks = _lacking_key(view, one)
        why = lacks or "the view shows its key: a transaction that only deletes from it asks no source"
        yield Optimisation(name="deletes by key", of=one.alias, applies=not lacks, why=why)


def _modified_in_place(view: JoinView) -> Iterator[Optimisation]:
    for one in view.occurrences:
        shown = sorted(set(shown_places(view, one.alias).values()) - read_columns(view, one.alias))
        lacks = _lacking_key(view, one) or (
            "" if shown else "a condition or an expression reads all that is shown of it"
        )
        why = lacks or f"a transaction that modifies only {', '.join(shown)} of its rows asks no source"
        yield Optimisation(name="modified in place", of=one.alias, applies=not lacks, why=why)


def _found_in_view(view: JoinView) -> Iterator[Optimisation]:
    others = {one.alias for one in view.occurrences}
    for one in view.occurrences:
        key = set(one.relation.key)
        ways = [step for step in steps_to(view, one.alias, others - {one.alias}) if set(step.columns) == key]
        yield Optimisation(
            name="rows found in the view",
            of=one.alias,
            applies=not (why := _not_found(view, one, is_led_to=bool(ways))),
            why=why
            or f"rows that join by its key ({', '.join(one.relation.key)}) are read in the view, if they are there",
        )


def _not_found(view: JoinView, one: Occurrence, *, is_led_to: bool) -> str:
    """Return why an occurrence's rows are never read in the view, or nothing."""
    if lacks := _lacking_key(view, one):
        return lacks
    if not is_led_to:
        return f"nothing joins by its whole key ({', '.join(one.relation.key)}): other rows may have the same values"
    if not shows_whole_rows(view, one.alias):
        shown = shown_columns(view, one.alias)
        hidden = [column for column in view.relations[one.relation.name] if column not in shown]
        return f"the view needs {', '.join(hidden)} of it, and does not show it: a change could not be found in it"
    return ""


def _lacking_key(view: JoinView, one: Occurrence) -> str:
    if not one.relation.key:
        return "it has no primary key"
    return "" if key_outputs(view, one.alias) else f"the view does not show its key ({', '.join(one.relation.key)})"


def _irrelevant(view: JoinView) -> Iterator[Optimisation]:
    found = references(view)
    for one in found:
        why = f"each row of {one.child} has exactly one here: new rows here, and rows that went, have none there"
        yield Optimisation(name="irrelevant changes", of=one.parent, applies=True, why=why)
    if not found:
        why = "no two relations of one source are joined by a foreign key that it enforces on columns without NULL"
        yield Optimisation(name="irrelevant changes", of="", applies=False, why=why)


def _asked_together(view: JoinView) -> Iterator[Optimisation]:
    sources: dict[str, list[str]] = {}
    for edge in view.edges:
        ends = [view.occurrence(alias).relation.name.source for alias in (edge.left, edge.right)]
        if ends[0] == ends[1]:
            beside = sources.setdefault(ends[0], [])
            beside += [alias for alias in (edge.left, edge.right) if alias not in beside]
    for source, aliases in sources.items():
        why = f"{', '.join(aliases)} are joined there: one query answers for all of them"
        yield Optimisation(name="one query to a source", of=source, applies=True, why=why)
    if not sources:
        why = "no source has two occurrences that the view joins"
        yield Optimisation(name="one query to a source", of="", applies=False, why=why)
