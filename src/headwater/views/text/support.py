"""What a view may not contain, and why: one table for the code that refuses and for the reference page made from it.

A view is refused at declaration, never later. Codes are stable: a code is never given a second meaning.
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.errors import InvalidView, UnsupportedView
from headwater.model.relation import COUNT, TICK
from headwater.model.transaction import ORDINAL

RESERVED_NAMES = frozenset({COUNT, TICK, ORDINAL})
"""Columns that travel beside a row's own, so no row may bring its own under these names, in any case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a view is refused: a code to search for, what is the matter, and what the author can do."""

    code: str
    summary: str
    remedy: str
    error: type[InvalidView | UnsupportedView] = UnsupportedView


NOT_SQL = Reason(
    code="HW-201",
    summary="the text is not Spark SQL that can be read",
    remedy="correct the SQL",
    error=InvalidView,
)
SEVERAL_STATEMENTS = Reason(
    code="HW-202",
    summary="the file holds several statements",
    remedy="keep one SELECT per view file",
    error=InvalidView,
)
NOT_A_QUERY = Reason(
    code="HW-203",
    summary="the statement is not a SELECT",
    remedy="a view file holds one SELECT and nothing else: no CREATE, no INSERT",
    error=InvalidView,
)
RELATION_NAME = Reason(
    code="HW-204",
    summary="a relation is not named by its source",
    remedy="write source.table or source.schema.table, or the name of a view of this project",
    error=InvalidView,
)
UNKNOWN_SOURCE = Reason(
    code="HW-205",
    summary="the source is not known",
    remedy="declare the source in headwater.toml, or correct its name",
    error=InvalidView,
)
UNKNOWN_RELATION = Reason(
    code="HW-206",
    summary="the source has no such relation",
    remedy="correct the name; relation names are matched exactly as the source spells them",
    error=InvalidView,
)
UNKNOWN_COLUMN = Reason(
    code="HW-207",
    summary="no relation of the view has such a column",
    remedy="correct the name, or add the relation that has it before this place",
    error=InvalidView,
)
AMBIGUOUS_COLUMN = Reason(
    code="HW-208",
    summary="the column may be one of several",
    remedy="write the relation's alias before the column",
    error=InvalidView,
)
DUPLICATE_ALIAS = Reason(
    code="HW-209",
    summary="two relations of the view go by the same name",
    remedy="give one of them an alias: source.table AS other",
    error=InvalidView,
)
DUPLICATE_OUTPUT = Reason(
    code="HW-210",
    summary="two output columns have the same name",
    remedy="rename one of them with AS; names that differ only in case count as the same",
    error=InvalidView,
)
UNNAMED_OUTPUT = Reason(
    code="HW-211",
    summary="an output column has no name",
    remedy="give the expression a name with AS",
    error=InvalidView,
)
RESERVED_OUTPUT = Reason(
    code="HW-212",
    summary="the output column's name is used by Headwater itself",
    remedy="rename it with AS; _tick, _count and _ordinal are taken",
    error=InvalidView,
)
NO_RELATION = Reason(
    code="HW-213",
    summary="the view reads no relation",
    remedy="add FROM source.table",
    error=InvalidView,
)
UNUSABLE_TYPE = Reason(
    code="HW-214",
    summary="the column's type cannot be held",
    remedy="leave the column out; instead of *, name the columns that are wanted; write out what a generated one is",
)
STRING_ESCAPE = Reason(
    code="HW-215",
    summary="the string literal has an escape that is not understood with certainty",
    remedy=r"write the character itself, or one of \\ \' \" \n \r \t \% \_ (a quote as \', not as two quotes)",
)
RESERVED_COLUMN = Reason(
    code="HW-216",
    summary="the relation's column has a name that is used by Headwater itself",
    remedy="rename the column in its source, or leave it out; _tick, _count and _ordinal are taken",
)
UNTYPED_OUTPUT = Reason(
    code="HW-217",
    summary="an output column has no type, because nothing but NULL is in it",
    remedy="give it a type: CAST(NULL AS STRING) AS name, or CAST(array() AS ARRAY<INT>) AS name",
    error=InvalidView,
)
NOT_GROUPED = Reason(
    code="HW-218",
    summary="the column is neither grouped by nor inside an aggregate",
    remedy="add it to GROUP BY, or put it into an aggregate such as MAX",
    error=InvalidView,
)
STRICT = Reason(
    code="HW-219",
    summary="a part of the view would be recomputed from all its rows, and the view is strict",
    remedy="write it otherwise, or remove strict = true",
)
NATURAL_JOIN = Reason(
    code="HW-233",
    summary="NATURAL JOIN changes its meaning when a source adds a column",
    remedy="name the columns: JOIN ... USING (...)",
)
CLAUSE = Reason(
    code="HW-234",
    summary="this clause is not maintained",
    remedy="remove it",
)
VIEW_CIRCLE = Reason(
    code="HW-235",
    summary="the view reads itself, through the views that it names",
    remedy="let one of them read the sources' relations instead",
    error=InvalidView,
)
NOT_REPEATABLE = Reason(
    code="HW-240",
    summary="the value depends on when, where or by whom it is run",
    remedy="store the value in a source and read it from there, or apply the function when reading the view",
)
UNKNOWN_FUNCTION = Reason(
    code="HW-241",
    summary="the function is not in the list of those that may be called",
    remedy="use functions of that list, in docs/reference/sql.md; a user's own are never in it: they may do anything",
)
PARAMETER = Reason(
    code="HW-242", summary="a view has no parameters", remedy="write the value itself, or filter when reading the view"
)
UNKNOWN_EXPRESSION = Reason(
    code="HW-243",
    summary="this form of SQL is not supported",
    remedy="write it with operators, CASE, CAST and built-in functions",
)

TOO_LARGE = Reason(
    code="HW-275",
    summary="the text is too large, or too deep",
    remedy="put long lists of values into a table of a source and join it; name inner parts with WITH",
)
OTHER_DIALECT = Reason(
    code="HW-276",
    summary="this is how another database writes it",
    remedy="write it as Spark SQL does",
    error=InvalidView,
)
OPEN_ORDER = Reason(
    code="HW-290",
    summary="the order that the answer depends on is not given in full, and cannot be completed by all columns",
    remedy="add columns to ORDER BY until no two rows agree in all of them",
)
FRAME_OF_DISTANCE = Reason(
    code="HW-291",
    summary="the first or last row within a distance is not told by ORDER BY alone",
    remedy="use a ROWS frame, or order by a column of which no two rows have the same value",
)
SEVERAL_ORDERS = Reason(
    code="HW-292",
    summary="two windows order rows that may be equal, so which of them is which is not told",
    remedy="give both windows the same PARTITION BY and ORDER BY, compute one of them in a query of its own, "
    "or declare a primary key in the source",
)
NO_WINDOW = Reason(
    code="HW-293",
    summary="a group has no order, so it has no first or last value",
    remedy="write OVER (PARTITION BY ... ORDER BY ...) after the call, or use MIN or MAX",
)
FILTERED_WINDOW = Reason(
    code="HW-294",
    summary="Spark has no FILTER in window functions",
    remedy="put the test into the argument: COUNT(CASE WHEN test THEN value END) OVER (...)",
)
WINDOW_BEFORE_HAVING = Reason(
    code="HW-296",
    summary="Spark computes these window functions before it has left out the groups that HAVING leaves out",
    remedy="write HAVING ... AND COUNT(*) >= 0: with an aggregate in it HAVING comes first, as it should",
)

NO_STAR = "write COUNT(*), or name the columns"

REASONS: tuple[Reason, ...] = (
    NOT_SQL,
    SEVERAL_STATEMENTS,
    NOT_A_QUERY,
    RELATION_NAME,
    UNKNOWN_SOURCE,
    UNKNOWN_RELATION,
    UNKNOWN_COLUMN,
    AMBIGUOUS_COLUMN,
    DUPLICATE_ALIAS,
    DUPLICATE_OUTPUT,
    UNNAMED_OUTPUT,
    RESERVED_OUTPUT,
    NO_RELATION,
    UNUSABLE_TYPE,
    STRING_ESCAPE,
    RESERVED_COLUMN,
    UNTYPED_OUTPUT,
    NOT_GROUPED,
    STRICT,
    NATURAL_JOIN,
    CLAUSE,
    VIEW_CIRCLE,
    NOT_REPEATABLE,
    UNKNOWN_FUNCTION,
    PARAMETER,
    UNKNOWN_EXPRESSION,
    TOO_LARGE,
    OTHER_DIALECT,
    OPEN_ORDER,
    FRAME_OF_DISTANCE,
    SEVERAL_ORDERS,
    NO_WINDOW,
    FILTERED_WINDOW,
    WINDOW_BEFORE_HAVING,
)
