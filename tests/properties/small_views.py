"""Small views over integer relations, written down in one line each, and a few ways to play them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from headwater.judge.grade import grade_sequence
from headwater.model.guarantee import Guarantee
from headwater.model.relation import Column, ForeignKey, Relation, RelationName
from headwater_lab.ledger import Rows
from headwater_lab.lossy_world import LossyWorld
from headwater_lab.one_join import declare
from headwater_lab.world import Sent, World, WorldSetting

Row = tuple[int, ...]


def name_of(text: str) -> RelationName:
    """Return the name that a view's SQL writes as `source.relation`."""
    source, name = text.split(".")
    return RelationName(source=source, name=name)


def relation(text: str, *, key: tuple[str, ...] = (), parents: Mapping[str, tuple[str, str]] | None = None) -> Relation:
    """Return a relation from `source.name(a, b)`; `parents` are its references, by column."""
    name, columns = text.rstrip(")").split("(")
    names = [column.strip() for column in columns.split(",")]
    keys = tuple(
        ForeignKey(columns=(column,), parent=name_of(parent), parent_columns=(referred,))
        for column, (parent, referred) in (parents or {}).items()
    )
    return Relation(
        name=name_of(name),
        columns=tuple(Column(name=column, type="int", native="int4") for column in names),
        key=key,
        foreign_keys=keys,
        not_null=frozenset(key) | frozenset(parents or {}),
    )


def setting(sql: str, rows: Mapping[Relation, list[Row]]) -> WorldSetting:
    """Return a world's beginning: a view, its relations, and their rows."""
    catalog = {one.name: one for one in rows}
    return WorldSetting(
        view=declare("v", sql, catalog), catalog=catalog, rows={one.name: Counter(own) for one, own in rows.items()}
    )


def change(text: str, *rows: Row, count: int = 1) -> Rows:
    """Return rows that come to a relation; with a negative count, rows that go."""
    return {name_of(text): dict.fromkeys(rows, count)}


def play_out(world: World) -> None:
    """Let everything that is on its way arrive, and every query be answered."""
    while not world.is_quiet:
        for source in world.setting.sources:
            if world.queries[source]:
                world.serve(source)
            if world.channels[source]:
                world.deliver(source)


def guarantee(world: World | LossyWorld) -> Guarantee:
    """Return what held in a world."""
    shown = world.world.shown_states() if isinstance(world, LossyWorld) else world.shown_states()
    return grade_sequence(world.right_states(), shown).guarantee


def sent(world: World) -> int:
    """Return how many queries were sent."""
    return sum(isinstance(event, Sent) for event in world.events)
