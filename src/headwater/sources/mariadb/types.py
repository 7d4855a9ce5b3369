"""Which Spark type holds a MariaDB type, decided from the text that its catalog prints.

Decisions a user may question:

- Unsigned integers are held by the next larger type, `bigint unsigned` by `decimal(20,0)`. `tinyint(1)` may hold 5:
  it is no boolean.
- `decimal(p,s)` with p > 38 is unusable. `float` and `double` keep their bits; -0.0 is kept as 0.0, which it equals.
- `timestamp` is `timestamp`, `datetime` is `timestamp_ntz`. Zero dates, dates with a zero in them, and dates that no
  calendar has are refused by name when they are met.
- `bit(n)` is a string of n digits. `time`, `uuid`, `inet4`, `inet6`, `json`, `enum` and `set` are strings, as MariaDB
  prints them.
- Texts are held in the character sets utf8mb4, utf8mb3, ascii and latin1. `binary(n)` has its n bytes.
- Everything else is unusable: a view that names such a column is refused, other views do not care.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from headwater.model.relation import Column

_MAX_PRECISION = 38
_INTEGERS = {"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8}
_SIGNED = {1: "tinyint", 2: "smallint", 3: "int", 4: "int", 8: "bigint"}
_UNSIGNED = {1: "smallint", 2: "int", 3: "int", 4: "bigint", 8: "decimal(20,0)"}
_TEXTS = frozenset(("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "json"))
_BYTES = frozenset(("varbinary", "tinyblob", "blob", "mediumblob", "longblob"))
_TEMPORAL = {"time": "string", "datetime": "timestamp_ntz", "timestamp": "timestamp"}
_PLUGINS = {"uuid": 16, "inet6": 16, "inet4": 4}
CHARSETS = frozenset(("utf8mb4", "utf8mb3", "utf8", "ascii", "latin1"))
"""The character sets whose texts we read as the server does."""
_OURS = {code: bytes([code]).decode("cp1252", "ignore") for code in range(0x80, 0xA0)}
FROM_LATIN1 = {code: text for code, text in _OURS.items() if text}
"""What MariaDB's latin1 has otherwise than Python's: it is Windows', with five bytes left as they are."""
TO_LATIN1 = {**dict.fromkeys(FROM_LATIN1, "\uffff"), **{ord(text): chr(code) for code, text in FROM_LATIN1.items()}}
"""The way back. What MariaDB's latin1 does not have cannot be written in Python's either."""
_NATIVE = re.compile(
    r"(?P<name>\w+)(?:\((?P<arguments>.*)\))?(?P<rest>(?: unsigned| zerofill)*)"
    r"(?: character set (?P<charset>\w+) collate (?P<collation>\w+))?(?P<more>.*)",
    re.DOTALL,
)
GENERATED = " generated"
"""Stands behind the type of a column whose values the server computes from others of its row."""
_MEMBER = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldType:
    """What we need to know of a type that we can hold."""

    kind: str
    """What its values are: integer, decimal, float, double, date, time, datetime, timestamp, year, bit, enum, set,
    text, binary, uuid, inet4 or inet6."""
    spark: str
    length: int = 0
    """How many bytes an integer or fixed binary has, the bits of a bit field, the digits of a fraction of a second."""
    is_unsigned: bool = False
    scale: int = 0
    charset: str = ""
    collation: str = ""
    members: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[object, ...]:
        """What two columns have in common whose values are logged alike."""
        match self.kind:
            case "uuid" | "inet4" | "inet6":
                return ("binary", self.length)
            case "text":
                return ("text", "utf8mb3" if self.charset == "utf8" else self.charset)
            case "enum" | "set":
                return (self.kind, self.members)
            case _:
                return (self.kind, self.length, self.is_unsigned, self.scale)


def held_type(native: str) -> HeldType | None:  # noqa: PLR0911 — one for each kind of type
    """Return how a type is held that the catalog prints so. None if it is unusable.

    >>> [held_type(one).spark for one in ("int(10) unsigned", "decimal(12,2)", "bit(4)")]
    ['bigint', 'decimal(12,2)', 'string']
    >>> held_type("enum('a','it''s') character set latin1 collate latin1_bin").members
    ('a', "it's")
    >>> held_type("geometry"), held_type("decimal(39,0)"), held_type("datetime /* mariadb-5.3 */")
    (None, None, None)
    """
    found = _NATIVE.fullmatch(native)
    if found is None or found["more"].strip() not in ("", "zerofill", GENERATED.strip()):
        return None
    name, arguments = found["name"].lower(), found["arguments"] or ""
    is_unsigned = "unsigned" in found["rest"] or "zerofill" in found["rest"]
    charset, collation = found["charset"] or "", found["collation"] or ""
    if name in _INTEGERS:
        length = _INTEGERS[name]
        spark = (_UNSIGNED if is_unsigned else _SIGNED)[length]
        return HeldType(kind="integer", spark=spark, length=length, is_unsigned=is_unsigned)
    if name == "decimal":
        precision, scale = (int(one) for one in arguments.split(","))
        if precision > _MAX_PRECISION:
            return None
        spark = f"decimal({precision},{scale})"
        return HeldType(kind="decimal", spark=spark, length=precision, scale=scale)
    if name in _TEMPORAL:
        return HeldType(kind=name, spark=_TEMPORAL[name], length=int(arguments or 0))
    if name in _TEXTS:
        charset, collation = (charset, collation) if charset else ("utf8mb4", "utf8mb4_bin")
        is_known = charset in CHARSETS
        return HeldType(kind="text", spark="string", charset=charset, collation=collation) if is_known else None
    if name in ("enum", "set"):
        members = tuple(one[1].replace("''", "'").replace("\\\\", "\\") for one in _MEMBER.finditer(arguments))
        is_known = charset in CHARSETS
        return HeldType(kind=name, spark="string", members=members, charset=charset) if is_known else None
    if name in _PLUGINS:
        return HeldType(kind=name, spark="string", length=_PLUGINS[name])
    if name in _BYTES:
        return HeldType(kind="binary", spark="binary")
    return {
        "binary": HeldType(kind="binary", spark="binary", length=int(arguments or 1) if name == "binary" else 0),
        "float": HeldType(kind="float", spark="float"),
        "double": HeldType(kind="double", spark="double"),
        "date": HeldType(kind="date", spark="date"),
        "year": HeldType(kind="year", spark="int"),
        "bit": HeldType(kind="bit", spark="string", length=int(arguments or 1) if name == "bit" else 0),
    }.get(name)


def held(column: Column) -> HeldType:
    """Return how a column is held."""
    found = held_type(column.native)
    assert found is not None, f"a column has a type that is held: {column}"
    return found


def quoted(name: str) -> str:
    """Return an identifier as SQL writes it.

    >>> quoted("odd`name")
    '`odd``name`'
    """
    return "`" + name.replace("`", "``") + "`"


def printed(column: Column, alias: str = "r") -> str:
    """Return the expression by which a column is read: its text is what the log's value is made to."""
    name, one = f"{alias}.{quoted(column.name)}", held(column)
    match one.kind:
        case "float":
            return f"CAST({name} AS DOUBLE)"
        case "bit":
            return f"LPAD(BIN({name} + 0), {one.length}, '0')"
        case "time" | "date" | "datetime" | "timestamp" | "year" | "uuid" | "inet4" | "inet6":
            return f"CAST({name} AS CHAR)"
        case _:
            return name
