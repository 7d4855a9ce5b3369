"""What the log says of a table before its rows: its name, and of each column name, type, sign, characters and members.

Names, signs, characters and members are there where the server logs them (`binlog_row_metadata=FULL`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from struct import unpack_from

from headwater.sources.mariadb.types import HeldType

TINY, SHORT, LONG, FLOAT, DOUBLE = 1, 2, 3, 4, 5
OLD_TIMESTAMP, LONGLONG, INT24, DATE, OLD_TIME, OLD_DATETIME, YEAR, NEWDATE = 7, 8, 9, 10, 11, 12, 13, 14
VARCHAR, BIT, TIMESTAMP2, DATETIME2, TIME2 = 15, 16, 17, 18, 19
BLOB_COMPRESSED, VARCHAR_COMPRESSED = 140, 141
JSON, NEWDECIMAL, ENUM, SET, BLOB, VAR_STRING, STRING, GEOMETRY = 245, 246, 247, 248, 252, 253, 254, 255

_INTEGER_BYTES = {TINY: 1, SHORT: 2, INT24: 3, LONG: 4, LONGLONG: 8}
_FIXED = {
    **_INTEGER_BYTES,
    FLOAT: 4,
    DOUBLE: 8,
    DATE: 3,
    NEWDATE: 3,
    YEAR: 1,
    OLD_TIMESTAMP: 4,
    OLD_TIME: 3,
    OLD_DATETIME: 8,
}
_NUMBERS = frozenset((*_INTEGER_BYTES, FLOAT, DOUBLE, NEWDECIMAL, YEAR))
_FRACTIONS = {TIMESTAMP2: 4, DATETIME2: 5, TIME2: 3}
_ONE_BYTE = frozenset((FLOAT, DOUBLE, BLOB, GEOMETRY, JSON, BLOB_COMPRESSED, TIMESTAMP2, DATETIME2, TIME2))
_TWO_BYTES = frozenset((BIT, NEWDECIMAL, VARCHAR, VARCHAR_COMPRESSED, VAR_STRING, STRING, ENUM, SET))
DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
"""How many bytes a number of decimal digits takes."""
_WITH_CHARSET = frozenset((VARCHAR, VAR_STRING, BLOB, STRING, GEOMETRY, BLOB_COMPRESSED, VARCHAR_COMPRESSED))
_SIGNS, _DEFAULT_CHARSET, _CHARSETS, _NAMES, _SET_MEMBERS, _ENUM_MEMBERS = 1, 2, 3, 4, 5, 6
_ENUM_DEFAULT_CHARSET, _ENUM_CHARSETS = 10, 11
_PYTHON_CHARSETS = {"latin1": "cp1252", "ascii": "ascii"}


class LogFormatError(Exception):
    """The log holds something that we cannot read. Carries what, until it is known where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedColumn:
    """A column of a table as the log describes it. `width` is that of its values, or of what tells their length."""

    name: str
    kind: int
    meta: int
    width: int
    is_variable: bool
    is_unsigned: bool = False
    charset: str = ""
    members: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[object, ...]:  # noqa: PLR0911 — one for each kind of type
        """What a column of the catalog has to look like whose values these are (`HeldType.shape`)."""
        match self.kind:
            case code if code in _INTEGER_BYTES:
                return ("integer", _INTEGER_BYTES[code], self.is_unsigned, 0)
            case code if code == NEWDECIMAL:
                return ("decimal", self.meta & 255, False, self.meta >> 8)
            case code if code in _FRACTIONS:
                return ({TIMESTAMP2: "timestamp", DATETIME2: "datetime", TIME2: "time"}[code], self.meta, False, 0)
            case code if code == BIT:
                return ("bit", (self.meta >> 8) * 8 + (self.meta & 255), False, 0)
            case code if code in (ENUM, SET):
                return ("enum" if code == ENUM else "set", self.members)
            case code if code in (VARCHAR, VAR_STRING, BLOB, STRING):
                if self.charset and self.charset != "binary":
                    return ("text", self.charset)
                return ("binary", self.meta, False, 0) if code == STRING else ("binary", 0, False, 0)
            case code:
                names = {FLOAT: "float", DOUBLE: "double", DATE: "date", NEWDATE: "date", YEAR: "year"}
                return (names.get(code, f"type {code}"), 0, False, 0)

    def is_like(self, held: HeldType) -> bool:
        """Tell whether a column that is held so is logged so."""
        ours, theirs = held.shape, self.shape
        return ours == theirs or (ours[0] == "binary" and ours[:2] == theirs[:2])


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMap:
    """A table of the log, under the number that the following rows name."""

    schema: str
    table: str
    columns: tuple[LoggedColumn, ...]
    has_names: bool


def table_id(body: bytes) -> int:
    """Return the number of the table of a table map or a rows event."""
    return int.from_bytes(body[:6], "little")


def table_name(body: bytes) -> tuple[str, str, int]:
    """Return schema and table of a table map, and where its columns begin."""
    at = 8
    length = body[at]
    schema = body[at + 1 : at + 1 + length].decode()
    at += length + 2
    length = body[at]
    table = body[at + 1 : at + 1 + length].decode()
    return schema, table, at + length + 2


def parse_table_map(body: bytes, charsets: Mapping[int, str]) -> TableMap:
    """Return what a table map event says. `charsets` are the character sets of collations by number."""
    schema, table, at = table_name(body)
    count, at = length_encoded(body, at)
    codes = list(body[at : at + count])
    at += count
    size, at = length_encoded(body, at)
    metas, end = _metas(body, at, codes)
    if end != at + size:
        raise LogFormatError(f"what it says of the types of {schema}.{table} is longer than what we know")
    at = end + (count + 7) // 8
    more = dict(_optional(body, at))
    for place, code in enumerate(codes):
        if code == STRING:
            codes[place], metas[place] = _string(metas[place])
    names = list(_texts(more[_NAMES])) if _NAMES in more else []
    has_names = len(names) == count
    unsigned = _unsigned(codes, more.get(_SIGNS, b""))
    texts = [place for place, code in enumerate(codes) if code in _WITH_CHARSET]
    listed = [place for place, code in enumerate(codes) if code in (ENUM, SET)]
    sets = {
        **_charsets(texts, more.get(_DEFAULT_CHARSET), more.get(_CHARSETS), charsets),
        **_charsets(listed, more.get(_ENUM_DEFAULT_CHARSET), more.get(_ENUM_CHARSETS), charsets),
    }
    members = {
        **dict(zip([p for p in listed if codes[p] == ENUM], _members(more.get(_ENUM_MEMBERS, b"")), strict=False)),
        **dict(zip([p for p in listed if codes[p] == SET], _members(more.get(_SET_MEMBERS, b"")), strict=False)),
    }
    columns = []
    for place, (code, meta) in enumerate(zip(codes, metas, strict=True)):
        width, is_variable = _width(code, meta, f"{schema}.{table}")
        charset = sets.get(place, "")
        spoken = _PYTHON_CHARSETS.get(charset, "utf-8")
        columns.append(
            LoggedColumn(
                name=names[place].decode() if has_names else "",
                kind=code,
                meta=meta,
                width=width,
                is_variable=is_variable,
                is_unsigned=place in unsigned,
                charset=charset,
                members=tuple(one.decode(spoken, "replace") for one in members.get(place, ())),
            )
        )
    return TableMap(schema=schema, table=table, columns=tuple(columns), has_names=has_names)


def length_encoded(data: bytes, at: int) -> tuple[int, int]:
    """Return the number that stands somewhere in the protocol's own coding, and where it ends.

    >>> length_encoded(bytes([7]), 0), length_encoded(bytes([252, 1, 1]), 0)
    ((7, 1), (257, 3))
    """
    first = data[at]
    if first < 251:  # noqa: PLR2004 — the protocol's
        return first, at + 1
    size = {252: 2, 253: 3, 254: 8}[first]
    return int.from_bytes(data[at + 1 : at + 1 + size], "little"), at + 1 + size


def decimal_width(precision: int, scale: int) -> int:
    """Return how many bytes a decimal takes."""
    whole = precision - scale
    return whole // 9 * 4 + DIGIT_BYTES[whole % 9] + scale // 9 * 4 + DIGIT_BYTES[scale % 9]


def _metas(body: bytes, at: int, codes: list[int]) -> tuple[list[int], int]:
    metas = []
    for code in codes:
        if code in _ONE_BYTE:
            metas.append(body[at])
            at += 1
        elif code in _TWO_BYTES:
            metas.append(unpack_from("<H", body, at)[0])
            at += 2
        else:
            metas.append(0)
    return metas, at


def _string(meta: int) -> tuple[int, int]:
    """Return the real type of a column that is logged as a string of fixed length, and its length."""
    first, length = meta & 255, meta >> 8
    if first in (ENUM, SET):
        return first, length
    if first & 0x30 != 0x30:  # noqa: PLR2004 — the log's own packing of lengths above 255
        length |= ((first & 0x30) ^ 0x30) << 4
    return STRING, length


def _width(code: int, meta: int, table: str) -> tuple[int, bool]:  # noqa: PLR0911 — as above
    if code in _FIXED:
        return _FIXED[code], False
    if code in _FRACTIONS:
        return _FRACTIONS[code] + (meta + 1) // 2, False
    match code:
        case _ if code == NEWDECIMAL:
            return decimal_width(meta & 255, meta >> 8), False
        case _ if code == BIT:
            return (meta >> 8) + (1 if meta & 255 else 0), False
        case _ if code in (ENUM, SET):
            return meta, False
        case _ if code in (VARCHAR, VAR_STRING, STRING, VARCHAR_COMPRESSED):
            return 2 if meta > 255 else 1, True  # noqa: PLR2004 — one byte holds 255
        case _ if code in (BLOB, GEOMETRY, JSON, BLOB_COMPRESSED):
            return meta, True
    raise LogFormatError(f"table {table} has a column of type {code}, which we do not know")


def _optional(body: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    while at < len(body):
        kind = body[at]
        size, at = length_encoded(body, at + 1)
        yield kind, body[at : at + size]
        at += size


def _texts(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size, at = length_encoded(data, at)
        yield data[at : at + size]
        at += size


def _numbers(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        number, at = length_encoded(data, at)
        yield number


def _unsigned(codes: list[int], signs: bytes) -> set[int]:
    numbers = [place for place, code in enumerate(codes) if code in _NUMBERS]
    if (len(numbers) + 7) // 8 != len(signs):
        numbers = [place for place in numbers if codes[place] != YEAR]
    return {place for n, place in enumerate(numbers) if n // 8 < len(signs) and signs[n // 8] & (0x80 >> n % 8)}


def _charsets(
    places: list[int], default: bytes | None, each: bytes | None, charsets: Mapping[int, str]
) -> dict[int, str]:
    if each is not None:
        return {place: charsets.get(number, "?") for place, number in zip(places, _numbers(each), strict=False)}
    if default is None:
        return {}
    first, *others = _numbers(default)
    found = {place: charsets.get(first, "?") for place in places}
    for place, number in zip(others[::2], others[1::2], strict=True):
        found[places[place]] = charsets.get(number, "?")
    return found


def _members(data: bytes) -> Iterator[tuple[bytes, ...]]:
    at = 0
    while at < len(data):
        count, at = length_encoded(data, at)
        found = []
        for _ in range(count):
            size, at = length_encoded(data, at)
            found.append(data[at : at + size])
            at += size
        yield tuple(found)
