"""From a view's SQL to what maintenance needs to know of it."""

from headwater.views.laws.evaluate import evaluate
from headwater.views.laws.join import law_sql
from headwater.views.steps.explain import ViewDescription, describe_view
from headwater.views.steps.join import Condition, Edge, JoinView, Occurrence, Output
from headwater.views.text.declaration import relations_named

__all__ = [
    "Condition",
    "Edge",
    "JoinView",
    "Occurrence",
    "Output",
    "ViewDescription",
    "describe_view",
    "evaluate",
    "law_sql",
    "relations_named",
]
