"""Whether the rows of a view tell which rows they were made from: by the keys of its relations among its columns.

A column that the view's own equalities make equal to one that it shows is shown, too:

    SELECT o.customer, c.city FROM orders o JOIN customers c ON o.customer = c.id        shows c.id, as o.customer
"""

from __future__ import annotations

from sqlglot import exp

from headwater.views.steps.join import JoinView


def key_outputs(view: JoinView, alias: str) -> tuple[int, ...]:
    """Return the places of the columns that hold an occurrence's primary key. Empty if the view does not hold it.

    Only a column given as it is counts, or one that equals it by a join and has its type: an expression over it may be
    the same for two keys.
    """
    key = view.occurrence(alias).relation.key
    places = [_place_of(view, alias, column) for column in key]
    found = tuple(place for place in places if place is not None)
    return found if len(set(found)) == len(key) else ()


def row_outputs(view: JoinView, alias: str) -> tuple[int, ...]:
    """Return the places of the columns that hold all that the view needs of an occurrence's relation, in its order.

    Empty if the view does not hold all of it. With the key among them, a row of the view shows the whole row that it
    was made from.
    """
    needed = view.relations[view.occurrence(alias).relation.name]
    places = [_place_of(view, alias, column) for column in needed]
    found = tuple(place for place in places if place is not None)
    return found if len(set(found)) == len(needed) else ()


def read_columns(view: JoinView, alias: str) -> frozenset[str]:
    """Return the columns of an occurrence that more depends on than one value that is shown: its key among them."""
    expressions = [condition.expression for condition in view.conditions]
    expressions += [output.expression for output in view.outputs if not isinstance(output.expression, exp.Column)]
    read = {one.name for each in expressions for one in each.find_all(exp.Column) if one.table == alias}
    for edge in view.edges:
        read |= {left for left, _ in edge.pairs if edge.left == alias}
        read |= {right for _, right in edge.pairs if edge.right == alias}
    return frozenset(read) | frozenset(view.occurrence(alias).relation.key)


def shown_places(view: JoinView, alias: str) -> dict[int, str]:
    """Return which of the view's columns are columns of an occurrence, as they are."""
    return {
        place: output.expression.name
        for place, output in enumerate(view.outputs)
        if isinstance(output.expression, exp.Column) and output.expression.table == alias
    }


def shown_columns(view: JoinView, alias: str) -> frozenset[str]:
    """Return the columns of an occurrence that the view shows, under whatever name."""
    columns = view.relations[view.occurrence(alias).relation.name]
    return frozenset(column for column in columns if _place_of(view, alias, column) is not None)


def _place_of(view: JoinView, alias: str, column: str) -> int | None:
    shown: dict[tuple[str, str], int] = {}
    for place, output in enumerate(view.outputs):
        if isinstance(output.expression, exp.Column):
            shown.setdefault((output.expression.table, output.expression.name), place)
    return next((shown[same] for same in _equal_columns(view, alias, column) if same in shown), None)


def _equal_columns(view: JoinView, alias: str, column: str) -> list[tuple[str, str]]:
    """Return a column, and those of other occurrences that have its very value in every row of the view.

    Values of two types may be equal and not the same. So may zeros of a float, by their signs.
    """
    kind = _type_of(view, alias, column)
    same = [(alias, column)]
    for one in same if kind not in ("float", "double") else ():
        for edge in view.edges:
            for left, right in edge.pairs:
                ends = ((edge.left, left), (edge.right, right))
                for here, there in (ends, ends[::-1]):
                    if here == one and there not in same and _type_of(view, *there) == kind:
                        same.append(there)
    return same


def _type_of(view: JoinView, alias: str, column: str) -> str:
    return next(one.type for one in view.occurrence(alias).relation.columns if one.name == column)
