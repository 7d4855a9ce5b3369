"""What a statement in the log did to relations without telling which rows: it emptied them, altered them, or neither.

A statement that is not understood and names a relation has altered it. So may one that is understood: what was done to
columns that no view reads is nothing, what was done to others is an alteration.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from headwater.model.relation import ColumnUse, Relation

_TOKEN = re.compile(
    r"(?P<space>\s+|--\s[^\n]*|\#[^\n]*|/\*(?!M?!).*?\*/|/\*M?!\d*|\*/)"
    r"|`(?P<quoted>(?:[^`]|``)*)`"
    r'|"(?P<double>(?:[^"\\]|""|\\.)*)"'
    r"|(?P<text>'(?:[^'\\]|''|\\.)*')"
    r"|(?P<word>[\w$\u0080-\uffff]+)"
    r"|(?P<sign>.)",
    re.DOTALL,
)
_HARMLESS = frozenset(
    (
        "GRANT",
        "REVOKE",
        "SET",
        "FLUSH",
        "ANALYZE",
        "OPTIMIZE",
        "CHECK",
        "XA",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT",
    )
)
_OBJECTS = frozenset(
    (
        *(
            "USER",
            "ROLE",
            "VIEW",
            "TRIGGER",
            "PROCEDURE",
            "FUNCTION",
            "EVENT",
            "SEQUENCE",
            "INDEX",
            "SERVER",
            "PACKAGE",
        ),
        *("DATABASE", "SCHEMA", "TABLE"),
    )
)
_INDEX_WORDS = frozenset(("INDEX", "KEY", "UNIQUE", "FULLTEXT", "SPATIAL", "PRIMARY", "CONSTRAINT", "FOREIGN", "CHECK"))
_TABLE_OPTIONS = frozenset(
    (
        *("COMMENT", "AUTO_INCREMENT", "ROW_FORMAT", "STATS_PERSISTENT", "STATS_AUTO_RECALC", "STATS_SAMPLE_PAGES"),
        *("ALGORITHM", "LOCK", "FORCE", "KEY_BLOCK_SIZE", "DISABLE", "ENABLE", "DEFAULT", "ANALYZE", "OPTIMIZE"),
        *("REBUILD", "CHECK", "NOWAIT", "WAIT"),
    )
)


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    is_name: bool

    @property
    def word(self) -> str:
        return self.text.upper()


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """The relations that a statement emptied, and those that it altered, with what was done."""

    truncated: tuple[Relation, ...] = ()
    altered: tuple[tuple[Relation, str], ...] = field(default=())


@dataclass(frozen=True, slots=True)
class FollowedTables:
    """The relations that are followed, by schema and table in small letters, as names are compared most widely."""

    by_name: Mapping[tuple[str, str], Relation]

    def named(self, tokens: Sequence[_Token], schema: str) -> Iterator[Relation]:
        """Yield the relations that are named in a statement."""
        for place, token in enumerate(tokens):
            if token.is_name and (found := self._at(tokens, place, schema)) is not None:
                yield found

    def target(self, tokens: Sequence[_Token], schema: str) -> Relation | None:
        """Return the relation whose name some tokens begin with."""
        if len(tokens) > 2 and tokens[1].text == ".":  # noqa: PLR2004 — schema, point, table
            return self.by_name.get((tokens[0].text.lower(), tokens[2].text.lower()))
        return self.by_name.get((schema.lower(), tokens[0].text.lower())) if tokens else None

    def _at(self, tokens: Sequence[_Token], place: int, schema: str) -> Relation | None:
        if place > 1 and tokens[place - 1].text == ".":
            schema = tokens[place - 2].text
        return self.by_name.get((schema.lower(), tokens[place].text.lower()))


def effects(statement: str, schema: str, tables: FollowedTables) -> Effects:  # noqa: PLR0911 — one for each kind of statement
    """Return what a statement of a session, whose schema that was, did to relations.

    >>> effects("GRANT SELECT ON t TO me", "shop", FollowedTables({}))
    Effects(truncated=(), altered=())
    """
    tokens = list(_tokens(statement))
    words = [token.word for token in tokens]
    if not words or words[0] in _HARMLESS:
        return Effects()
    if words[0] == "TRUNCATE":
        rest = tokens[2:] if words[1:2] == ["TABLE"] else tokens[1:]
        found = tables.target(rest, schema)
        return Effects(truncated=() if found is None else (found,))
    shown = " ".join(statement.split())[:200]
    place = next((n for n, token in enumerate(tokens[:20]) if token.word in _OBJECTS), -1)
    if words[0] in ("CREATE", "DROP", "ALTER") and place > 0:
        kind, rest = words[place], _without(tokens[place + 1 :], ("IF", "NOT", "EXISTS"))
        if kind in ("DATABASE", "SCHEMA"):
            gone = [one for (own, _), one in tables.by_name.items() if rest and own == rest[0].text.lower()]
            return Effects(altered=tuple((one, shown) for one in gone) if words[0] == "DROP" else ())
        if kind != "TABLE" or "TEMPORARY" in words[:place]:
            return Effects()
        if words[0] == "CREATE":
            target = tables.target(rest, schema)
            is_replaced = "REPLACE" in words[:place]
            return Effects(altered=((target, shown),) if target is not None and is_replaced else ())
        if words[0] == "ALTER":
            return Effects(altered=tuple((one, shown) for one in _altered(tokens, place, schema, tables)))
    named = dict.fromkeys(one.name for one in tables.named(tokens, schema))
    by_name = {one.name: one for one in tables.by_name.values()}
    return Effects(altered=tuple((by_name[name], shown) for name in named))


def _altered(tokens: list[_Token], place: int, schema: str, tables: FollowedTables) -> list[Relation]:
    """Return the relations that ALTER TABLE altered."""
    rest = _without(tokens[place + 1 :], ("IF", "EXISTS"))
    target = tables.target(rest, schema)
    after = rest[3:] if len(rest) > 2 and rest[1].text == "." else rest[1:]  # noqa: PLR2004 — as above
    words = {token.word for token in after}
    found = [] if target is None else [target]
    is_ignoring = "IGNORE" in {token.word for token in tokens[:place]}
    if target is not None and not is_ignoring and all(_is_harmless(clause, target) for clause in _clauses(after)):
        found = []
    if words & {"EXCHANGE", "RENAME"}:
        found += [one for one in tables.named(after, schema) if one not in found]
    return found


def _is_harmless(clause: list[_Token], relation: Relation) -> bool:  # noqa: C901, PLR0911 — as above
    """Tell whether a clause of ALTER TABLE changes no value of a column that views read."""
    words = [token.word for token in clause]
    match words:
        case []:
            return True
        case ["ADD", *rest]:
            if rest and rest[0] in _INDEX_WORDS:
                return not {"CASCADE", "SET"} & set(rest)
            return bool(rest) and rest[0] not in ("PERIOD", "SYSTEM")
        case ["DROP", first, *_] if first in _INDEX_WORDS:
            return True
        case ["DROP", "PARTITION" | "SYSTEM" | "PERIOD", *_]:
            return False
        case ["RENAME", "INDEX" | "KEY", *_]:
            return True
        case ["RENAME", "COLUMN", *_]:
            names = [token.text for token in _without(clause[2:], ("IF", "EXISTS")) if token.word != "TO"]
            return all(_is_unread(relation, name) for name in names)
        case ["ALTER", *_]:
            return True  # a default, or whether an index is used
        case ["DROP" | "MODIFY" | "CHANGE", *_]:
            rest_of = _without(clause[1:], ("COLUMN", "IF", "EXISTS"))
            names = [token.text for token in rest_of[: 2 if words[0] == "CHANGE" else 1]]
            return bool(names) and all(_is_unread(relation, name) for name in names)
        case ["ENGINE", *rest]:
            return "INNODB" in rest
        case [first, *_]:
            return first in _TABLE_OPTIONS
    return False


def _is_unread(relation: Relation, name: str) -> bool:
    return all(one.use is ColumnUse.UNREAD for one in relation.columns if one.name.lower() == name.lower())


def _clauses(tokens: Sequence[_Token]) -> Iterator[list[_Token]]:
    """Yield what commas outside of parentheses divide."""
    depth, clause = 0, list[_Token]()
    for token in tokens:
        depth += (token.text == "(" and not token.is_name) - (token.text == ")" and not token.is_name)
        if token.text == "," and depth == 0:
            yield clause
            clause = []
        else:
            clause.append(token)
    yield clause


def _without(tokens: list[_Token], words: tuple[str, ...]) -> list[_Token]:
    """Return tokens without the words that they begin with."""
    place = 0
    while place < len(tokens) and tokens[place].word in words:
        place += 1
    return tokens[place:]


def _tokens(statement: str) -> Iterator[_Token]:
    for found in _TOKEN.finditer(statement):
        if found["quoted"] is not None:
            yield _Token(found["quoted"].replace("``", "`"), True)
        elif found["double"] is not None:
            yield _Token(found["double"].replace('""', '"'), True)
        elif found["word"] is not None:
            yield _Token(found["word"], True)
        elif found["sign"] is not None:
            yield _Token(found["sign"], False)
