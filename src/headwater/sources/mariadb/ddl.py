"""What a statement in the log did to relations without telling which rows: it emptied them, altered them, or neither.

A statement that is not understood and names a relation has altered it. So may one that is understood: what was done to
columns that no view reads is nothing, what was done to others is an alteration.

    SET STATEMENT lock_wait_timeout = 5 FOR ALTER TABLE t WAIT 5 DROP COLUMN c      what is done begins late
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from headwater.model.relation import Column, ColumnUse, Relation
from headwater.sources.mariadb.types import GENERATED

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
        *("REBUILD", "CHECK", "ENGINE"),
    )
)


_FIXED_VARIABLES = {0: 4, 1: 8, 3: 4}
_CATALOG, _CLIENT_CHARSET, _OLD_CATALOG = 6, 4, 2
_ENCODINGS = {
    "latin1": "cp1252",
    "latin2": "iso8859_2",
    "latin5": "iso8859_9",
    "latin7": "iso8859_13",
    "greek": "iso8859_7",
    "hebrew": "iso8859_8",
    "tis620": "tis_620",
    "sjis": "shift_jis",
    "cp932": "cp932",
    "ujis": "euc_jp",
    "eucjpms": "euc_jp",
    "euckr": "euc_kr",
    "gb2312": "gb2312",
    "gbk": "gbk",
    "big5": "big5",
    "koi8r": "koi8_r",
    "koi8u": "koi8_u",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp866": "cp866",
    "macroman": "mac_roman",
    "macce": "mac_latin2",
}


def client_encoding(status: bytes, charsets: Mapping[int, str]) -> str:
    """Return how the text of a statement is written: as the session wrote it. `status` are the event's variables.

    >>> client_encoding(bytes([0, 0, 0, 0, 0, 4, 8, 0, 8, 0, 8, 0]), {8: "latin1"})
    'cp1252'
    """
    at = 0
    while at < len(status):
        kind = status[at]
        if kind == _CLIENT_CHARSET:
            number = int.from_bytes(status[at + 1 : at + 3], "little")
            return _ENCODINGS.get(charsets.get(number, ""), "utf-8")
        if kind in _FIXED_VARIABLES:
            at += 1 + _FIXED_VARIABLES[kind]
        elif kind in (_CATALOG, _OLD_CATALOG):
            at += 2 + status[at + 1] + (kind == _OLD_CATALOG)
        else:
            break
    return "utf-8"


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    is_name: bool
    is_quoted: bool = False

    @property
    def word(self) -> str:
        """What it is as a word of SQL. Empty for a name in quotes: `key` is no KEY."""
        return "" if self.is_quoted else self.text.upper()


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """The relations that a statement emptied, and those that it altered, with what was done."""

    truncated: tuple[Relation, ...] = ()
    altered: tuple[tuple[Relation, str], ...] = field(default=())
    hidden: tuple[Relation, ...] = ()
    """Those behind which a session has put a temporary table of the same name: what it says of that one, it says so."""


@dataclass(frozen=True, slots=True)
class FollowedTables:
    """The relations that are followed, by schema and table. Some servers compare names in small letters."""

    by_name: Mapping[tuple[str, str], Relation]
    ignores_case: bool = False

    @classmethod
    def of(cls, by_name: Mapping[tuple[str, str], Relation], *, ignores_case: bool) -> FollowedTables:
        """Return the relations as a server compares their names."""
        if not ignores_case:
            return cls(by_name)
        return cls({(schema.lower(), table.lower()): one for (schema, table), one in by_name.items()}, True)

    def found(self, schema: str, table: str) -> Relation | None:
        """Return the relation of a name."""
        return self.by_name.get((self.folded(schema), self.folded(table)))

    def folded(self, name: str) -> str:
        """Return a name as it is compared."""
        return name.lower() if self.ignores_case else name

    def named(self, tokens: Sequence[_Token], schema: str) -> Iterator[Relation]:
        """Yield the relations that are named in a statement."""
        for place, token in enumerate(tokens):
            if token.is_name and (found := self._at(tokens, place, schema)) is not None:
                yield found

    def target(self, tokens: Sequence[_Token], schema: str) -> Relation | None:
        """Return the relation whose name some tokens begin with."""
        if len(tokens) > 2 and tokens[1].text == ".":  # noqa: PLR2004 — schema, point, table
            return self.found(tokens[0].text, tokens[2].text)
        return self.found(schema, tokens[0].text) if tokens else None

    def _at(self, tokens: Sequence[_Token], place: int, schema: str) -> Relation | None:
        if place > 1 and tokens[place - 1].text == ".":
            schema = tokens[place - 2].text
        return self.found(schema, tokens[place].text)


def effects(statement: str, schema: str, tables: FollowedTables) -> Effects:  # noqa: PLR0911 — one for each kind of statement
    """Return what a statement of a session, whose schema that was, did to relations.

    >>> effects("GRANT SELECT ON t TO me", "shop", FollowedTables({}))
    Effects(truncated=(), altered=(), hidden=())
    """
    tokens = _itself(list(_tokens(statement)))
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
            gone = [one for (own, _), one in tables.by_name.items() if rest and own == tables.folded(rest[0].text)]
            return Effects(altered=tuple((one, shown) for one in gone) if words[0] == "DROP" else ())
        if kind == "TABLE" and "TEMPORARY" in words[:place]:
            target = tables.target(rest, schema)
            return Effects(hidden=() if target is None or words[0] == "DROP" else (target,))
        if kind != "TABLE":
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
    match [token.word for token in after[:2]]:
        case ["NOWAIT", *_]:
            after = after[1:]
        case ["WAIT", _]:
            after = after[2:]
    clauses = list(_clauses(after))
    found = [] if target is None else [target]
    is_ignoring = "IGNORE" in {token.word for token in tokens[:place]}
    if target is not None and not is_ignoring and all(_is_harmless(clause, target) for clause in clauses):
        found = []
    for clause in clauses:
        match [token.word for token in clause[:2]]:
            case ["RENAME", "COLUMN" | "INDEX" | "KEY"]:
                pass
            case ["EXCHANGE" | "RENAME" | "CONVERT", *_]:
                found += [one for one in tables.named(clause, schema) if one not in found]
    return found


def _itself(tokens: list[_Token]) -> list[_Token]:
    """Return what is executed, without the settings that it is executed with: SET STATEMENT … FOR."""
    while [token.word for token in tokens[:2]] == ["SET", "STATEMENT"]:
        place = next((n for n, token in enumerate(tokens) if token.word == "FOR"), len(tokens))
        tokens = tokens[place + 1 :]
    return tokens


def _is_harmless(clause: list[_Token], relation: Relation) -> bool:  # noqa: C901, PLR0911 — as above
    """Tell whether a clause of ALTER TABLE changes no value of a column that views read."""
    words = [token.word for token in clause]
    if "REFERENCES" in words and {"CASCADE", "SET"} & set(words[words.index("REFERENCES") :]):
        return False  # its rows will be changed without being logged
    match words:
        case []:
            return True
        case ["ADD", *rest]:
            if rest and rest[0] in _INDEX_WORDS:
                return True
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
            if words[0] != "DROP" and any(_is_computed(one) for one in relation.columns):
                return False  # it may be computed from this column, and is computed again
            return bool(names) and all(_is_unread(relation, name) for name in names)
        case [first, *_] if first in _TABLE_OPTIONS:  # others may follow without a comma
            engines = [words[n + 1 : n + 3] for n, word in enumerate(words) if word == "ENGINE"]
            return "SYSTEM" not in words and all("INNODB" in one for one in engines)
    return False


def _is_unread(relation: Relation, name: str) -> bool:
    return all(one.use is ColumnUse.UNREAD for one in relation.columns if one.name.lower() == name.lower())


def _is_computed(column: Column) -> bool:
    """Tell whether views read a column that the server computes from others."""
    return column.use is not ColumnUse.UNREAD and column.native.endswith(GENERATED)


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
            yield _Token(found["quoted"].replace("``", "`"), True, True)
        elif found["double"] is not None:
            yield _Token(found["double"].replace('""', '"'), True, True)
        elif found["word"] is not None:
            yield _Token(found["word"], True)
        elif found["sign"] is not None:
            yield _Token(found["sign"], False)
