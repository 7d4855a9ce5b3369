"""Every function that the reference lists may be called."""

from __future__ import annotations

import pytest
import sqlglot

from headwater.views.text.checks import calls_known_functions
from headwater.views.text.functions import AGGREGATE_FUNCTIONS, SCALAR_FUNCTIONS, WINDOW_FUNCTIONS
from headwater.views.text.statement import Statement

EVERY = {**SCALAR_FUNCTIONS, **AGGREGATE_FUNCTIONS, **WINDOW_FUNCTIONS}


@pytest.mark.parametrize("name", EVERY)
def test_a_view_may_call_every_function_that_the_reference_lists(name: str) -> None:
    sql = f"SELECT {EVERY[name]} AS o FROM a.t"
    calls_known_functions(Statement(name="v", sql=sql, path="v.sql", tree=sqlglot.parse_one(sql, read="spark")))
