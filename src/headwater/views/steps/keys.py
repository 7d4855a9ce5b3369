"""Whether the rows of a view tell which rows they were made from: by the keys of its relations among its columns."""

from __future__ import annotations

from sqlglot import exp

from headwater.views.steps.join import JoinView


def key_outputs(view: JoinView, alias: str) -> tuple[int, ...]:
    """Return the places of the columns that hold an occurrence's primary key. Empty if the view does not hold it.

    Only a column given as it is counts: an expression over it may be the same for two keys.
    """
    key = view.occurrence(alias).relation.key
    places = [_place_of(view, alias, column) for column in key]
    return tuple(place for place in places if place is not None) if None not in places else ()


def row_outputs(view: JoinView, alias: str) -> tuple[int, ...]:
    """Return the places of the columns that hold all that the view needs of an occurrence's relation, in its order.

    Empty if the view does not hold all of it. With the key among them, a row of the view shows the whole row that it
    was made from.
    """
    needed = view.relations[view.occurrence(alias).relation.name]
    places = [_place_of(view, alias, column) for column in needed]
    return tuple(place for place in places if place is not None) if None not in places else ()


def _place_of(view: JoinView, alias: str, column: str) -> int | None:
    for place, output in enumerate(view.outputs):
        expression = output.expression
        if isinstance(expression, exp.Column) and (expression.table, expression.name) == (alias, column):
            return place
    return None
