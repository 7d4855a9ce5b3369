"""How a view's author spells things: functions by the names in the text, relations by the aliases in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from headwater.views.steps.segments import SegmentedView
from headwater.views.text.scope import relations_in
from headwater.views.text.spark_text import spark_text
from headwater.views.text.statement import Statement, read_statement
from headwater.views.text.written_call import find_call

_CALL = re.compile(r"\b(\w+)\(")
_QUALIFIER = re.compile(r"(?<![\w.`])(\w+)\.(?=[A-Za-z_`])")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorSpelling:
    """Functions by the names that Spark writes, and aliases by relations' names, where the text has only one."""

    functions: Mapping[str, str]
    aliases: Mapping[str, str]

    @classmethod
    def of(cls, view: SegmentedView) -> AuthorSpelling:
        """Return how a view's text, and those of the views that it reads, spell things."""
        functions: dict[str, set[str]] = {}
        aliases: dict[str, set[str]] = {}
        for sql in (view.sql, *(text.sql for text in view.lower)):
            statement = read_statement(sql)
            for name, spelled in _calls(statement):
                functions.setdefault(name, set()).add(spelled)
            for table in relations_in(statement.tree):
                aliases.setdefault(table.name, set()).add(table.alias or table.name)
        return cls(functions=_sure(functions), aliases=_sure(aliases))

    def words(self, text: str) -> str:
        """Return a text of ours as the author would write it.

        >>> AuthorSpelling(functions={"UPPER": "ucase"}, aliases={"orders": "o"}).words("UPPER(orders.item) > 'a'")
        "ucase(o.item) > 'a'"
        """
        return _QUALIFIER.sub(lambda found: f"{self.aliases.get(found[1], found[1])}.", self.calls(text))

    def calls(self, text: str) -> str:
        """Return a text with functions under the author's names for them."""
        return _CALL.sub(lambda found: f"{self.functions.get(found[1], found[1])}(", text)


def _calls(statement: Statement) -> Iterator[tuple[str, str]]:
    for call in statement.tree.find_all(exp.Func):
        if name := _CALL.match(spark_text(call)):
            if "start" in call.meta:
                yield name[1], statement.sql[call.meta["start"] : call.meta["end"] + 1].strip("`")
            elif found := find_call(call, statement.sql):
                yield name[1], statement.sql[found[1] : found[2]].partition("(")[0].strip()


def _sure(found: Mapping[str, set[str]]) -> dict[str, str]:
    return {name: next(iter(spelled)) for name, spelled in found.items() if len(spelled) == 1}
