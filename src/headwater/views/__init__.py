"""From a view's SQL to what maintenance needs to know of it."""

from headwater.views.declaration import declare, relations_named
from headwater.views.evaluate import evaluate
from headwater.views.explain import ViewDescription, describe_view
from headwater.views.law import law_sql, recompute_sql
from headwater.views.normal_form import Condition, Edge, JoinView, Occurrence, Output

__all__ = [
    "Condition",
    "Edge",
    "JoinView",
    "Occurrence",
    "Output",
    "ViewDescription",
    "declare",
    "describe_view",
    "evaluate",
    "law_sql",
    "recompute_sql",
    "relations_named",
]
