"""What every rule is told: where nodes are made, what the text names, and how to compile a query inside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from headwater.model.relation import Relation, RelationName
from headwater.views.compile.draft import Draft
from headwater.views.compile.names import Sight
from headwater.views.compile.plan import Block
from headwater.views.text.statement import Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One query's surroundings; `common` are the queries that WITH has named, by lower-case name."""

    draft: Draft
    statement: Statement
    catalog: Mapping[RelationName, Relation]
    common: Mapping[str, Callable[[], Block]]
    around: tuple[Sight, ...]
    compile: Callable[[exp.Expr, Context], Block]
    is_outermost: bool = False
