"""From a view's SQL text to a statement in which nothing is refused, and to the relations that it reads.

text ──read──► Statement ──VIEW_CHECKS──► ──catalog──► `compile`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headwater.model.relation import RelationName
from headwater.views.text.checks import VIEW_CHECKS
from headwater.views.text.scope import relation_name, relations_read
from headwater.views.text.statement import Statement, read_statement
from headwater.views.text.upstream_views import ViewText, statements_below


def relations_named(
    sql: str, *, name: str = "", path: str = "", lower: Sequence[ViewText] = ()
) -> tuple[RelationName, ...]:
    """Return the relations that a view reads, each once: what must be described before it can be declared.

    >>> [str(name) for name in relations_named("SELECT 1 AS one FROM shop.sales s, shop.sales t, crm.old.people")]
    ['shop.sales', 'crm.old.people']
    """
    statement = check_view(sql, name=name, path=path, lower=lower)
    return tuple(dict.fromkeys(relation_name(table, text) for table, text in relations_read(statement)))


def check_view(sql: str, *, name: str, path: str, lower: Sequence[ViewText] = ()) -> Statement:
    """Return a view's statement, if nothing in it is refused in any view.

    Upstream views are checked for themselves.
    """
    statement = replace(read_statement(sql, name=name, path=path), lower=statements_below(lower))
    for check in VIEW_CHECKS:
        check(statement)
    return statement
