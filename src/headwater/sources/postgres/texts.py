"""From texts as PostgreSQL prints them to typed Arrow columns: one decoder for the log and for the reads.

Law: a value gives the same Arrow value from the log and from a read. pgoutput (text format) and `COPY … (FORMAT csv)`
both print with the type's own output function, every connection of ours has the same printing settings, and both end
here.
Rows from the log are netted against rows from reads, so this equality is what exactness stands on. Two values that
are equal to Spark and to PostgreSQL but not to Arrow, -0.0 and 0.0, become one here: adding zero turns -0.0 into 0.0.

Work is done by Arrow, a whole column at a time. Only where Arrow has no kernel (bytea, arrays), or when a column holds
something that does not fit, is a value touched by Python; then the first value that does not fit is named.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import SourceRefused
from headwater.model.relation import Column, ColumnUse, Relation, RelationName, arrow_type
from headwater.sources.postgres.types import is_blank_padded

_ELEMENT = re.compile(r'"((?:[^"\\]|\\.)*)"|([^",{}]+)', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_SHOWN_CHARACTERS = 80


class _UnfitError(Exception):
    """A value does not fit. Carries it until the column's name is known."""


def typed_table(relation: Relation, columns: Sequence[str], texts: Sequence[pa.Array]) -> pa.Table:
    """Return the table whose columns the texts spell."""
    fields = [relation.column(name) for name in columns]
    arrays = [typed_column(relation.name, field, text) for field, text in zip(fields, texts, strict=True)]
    return pa.Table.from_arrays(arrays, schema=relation.arrow_schema(tuple(columns)))


def typed_column(relation: RelationName, column: Column, texts: pa.Array) -> pa.Array:
    """Return the typed column that texts spell, or refuse the relation for a value we cannot hold.

    A column that no view reads is NULL then.

    >>> name = RelationName(source="shop", name="sales")
    >>> price = Column(name="price", type="decimal(6,2)", native="numeric(6,2)")
    >>> typed_column(name, price, pa.array(["1.5", None])).to_pylist()
    [Decimal('1.50'), None]
    """
    try:
        return _typed(texts, column.type, is_blank_padded(column.native))
    except (_UnfitError, pa.ArrowInvalid) as error:
        if column.use is ColumnUse.UNREAD:
            return pa.nulls(len(texts), arrow_type(column.type))
        value = str(error) if isinstance(error, _UnfitError) else _first_unfit(texts, column.type)
        raise SourceRefused(
            f'relation "{relation}" holds a value that cannot be kept exactly',
            code="HW-330",
            detail=f'column "{column.name}" ({column.native}, kept as {column.type}) is {_shown(value)}',
            hint="correct the value at the source, or give the column a type that Spark can hold exactly"
            " (numeric needs a precision of at most 38; dates must be finite and between the years 1 and 9999);"
            f" if the log holds it: `headwater teardown --source {relation.source}`, then `headwater run`, reads"
            " this source again, and the other views go on",
        ) from None


def _typed(texts: pa.Array, spark_type: str, blank_padded: bool) -> pa.Array:
    match spark_type:
        case "string":
            return pc.utf8_rtrim(texts, characters=" ") if blank_padded else texts
        case "boolean":
            return pc.equal(texts, "t")
        case "binary":
            return pa.array(
                [None if text is None else bytes.fromhex(text[2:]) for text in texts.to_pylist()], pa.binary()
            )
        case _ if spark_type.startswith("decimal("):
            return _decimals(texts, arrow_type(spark_type))
        case _ if spark_type.startswith("array<"):
            return _arrays(texts, spark_type)
        case _:
            values = texts.cast(arrow_type(spark_type))
            return pc.add(values, pa.scalar(0, values.type)) if pa.types.is_floating(values.type) else values


def _decimals(texts: pa.Array, target: pa.Decimal128Type) -> pa.Array:
    """Cast by Arrow. Where it cannot (more than 38 digits, even if they are zeros), value by value.

    Arrow's cast overflows silently when the digits before the point are too many (seen in 26.0: 10^30 becomes another
    number), so they are counted first.
    """
    if not _overflows(texts, target.precision - target.scale):
        try:
            return texts.cast(target)
        except pa.ArrowInvalid:
            pass
    return pa.array([None if text is None else _exact(text, target) for text in texts.to_pylist()], target)


def _overflows(texts: pa.Array, whole_digits: int) -> bool:
    """Tell whether some number has more digits before the point than that."""
    lengths = pc.utf8_length(texts)
    if (pc.max(lengths).as_py() or 0) <= whole_digits:
        return False
    points = pc.find_substring(texts, ".")
    whole = pc.if_else(pc.less(points, 0), lengths, points)
    signs = pc.starts_with(texts, "-").cast(pa.int32())
    return (pc.max(pc.subtract(whole, signs)).as_py() or 0) > whole_digits


def _exact(text: str, target: pa.Decimal128Type) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise _UnfitError(text) from None
    if not value.is_finite():
        raise _UnfitError(text)
    if value == 0:
        return Decimal(0)
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    while digits[-1] == 0 and exponent < 0:
        digits, exponent = digits[:-1], exponent + 1
    if -exponent > target.scale or len(digits) + exponent > target.precision - target.scale:
        raise _UnfitError(text)
    return Decimal((sign, digits, exponent))


def _arrays(texts: pa.Array, spark_type: str) -> pa.Array:
    element = spark_type.removeprefix("array<").removesuffix(">")
    offsets: list[int | None] = []
    elements: list[str | None] = []
    for text in texts.to_pylist():
        offsets.append(None if text is None else len(elements))
        if text is not None:
            elements.extend(array_elements(text))
    offsets.append(len(elements))
    values = _typed(pa.array(elements, pa.string()), element, False)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values).cast(arrow_type(spark_type))


def array_elements(text: str) -> list[str | None]:
    r"""Return the texts of a one-dimensional array's elements.

    >>> array_elements('{1,NULL,"a \\"b\\", c","NULL"}')
    ['1', None, 'a "b", c', 'NULL']
    """
    if not text.startswith("{") or text.startswith("{{"):
        raise _UnfitError(text)
    return [
        _ESCAPE.sub(r"\1", found[1]) if found[2] is None else None if found[2] == "NULL" else found[2]
        for found in _ELEMENT.finditer(text, 1, len(text) - 1)
    ]


def _first_unfit(texts: pa.Array, spark_type: str) -> str:
    for text in texts.to_pylist():
        try:
            _typed(pa.array([text], pa.string()), spark_type, False)
        except (_UnfitError, pa.ArrowInvalid):
            return str(text)
    return "unknown"


def _shown(value: str) -> str:
    return repr(value) if len(value) <= _SHOWN_CHARACTERS else repr(value[:_SHOWN_CHARACTERS]) + "…"
