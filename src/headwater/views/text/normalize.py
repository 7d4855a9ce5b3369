"""The rewrite rules in the order they run. Each takes a SELECT and returns a new one that means the same.

More of SQL comes as more rules: a rule that turns a construct into those below goes before them, and the check that
refuses the construct goes away.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from headwater.views.text.expand_stars import expand_stars
from headwater.views.text.join_using_as_on import join_using_as_on
from headwater.views.text.name_outputs import name_outputs, type_outputs
from headwater.views.text.qualify_columns import qualify_columns
from headwater.views.text.scope import Scope

RULES: tuple[Callable[[exp.Select, Scope], exp.Select], ...] = (
    expand_stars,
    qualify_columns,
    join_using_as_on,
    name_outputs,
    type_outputs,
)


def normalize(scope: Scope) -> exp.Select:
    """Return the statement of a scope after all rules."""
    select = scope.statement.tree
    assert isinstance(select, exp.Select), "the checks let only SELECT pass"
    for rule in RULES:
        select = rule(select, scope)
    return select
