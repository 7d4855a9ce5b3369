"""The functions a view may call, as Spark spells them.

A name is here because its value depends on its arguments alone, because it makes one value from one row, and because
sqlglot writes it back as something that means the same. Its example is what a test runs on Spark, as written and as
rewritten, over the columns n (int), m (decimal), x (double), t (string), d (date) and s (timestamp).
Everything else is refused: an unknown function may be a user's, and a user's function may do anything.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from headwater.views.text.written_call import find_call

SCALAR_FUNCTIONS: Mapping[str, str] = {
    "abs": "abs(n)",
    "acos": "acos(0.5)",
    "acosh": "acosh(1.5)",
    "add_months": "add_months(d, 1)",
    "array": "array(n, 2)",
    "array_contains": "array_contains(array(n, 2), 2)",
    "array_distinct": "array_distinct(array(n, n))",
    "array_join": "array_join(split(t, ','), '-')",
    "array_max": "array_max(array(n, 2))",
    "array_min": "array_min(array(n, 2))",
    "array_position": "array_position(array(n, 2), 2)",
    "array_size": "array_size(array(n, 2))",
    "ascii": "ascii(t)",
    "asin": "asin(0.5)",
    "asinh": "asinh(x)",
    "atan": "atan(x)",
    "atan2": "atan2(x, 2)",
    "atanh": "atanh(0.5)",
    "bigint": "bigint(n)",
    "bin": "bin(n)",
    "bit_length": "bit_length(t)",
    "boolean": "boolean(n)",
    "bround": "bround(m, 1)",
    "btrim": "btrim(t)",
    "cardinality": "cardinality(array(n))",
    "cbrt": "cbrt(x)",
    "ceil": "ceil(m)",
    "ceiling": "ceiling(m)",
    "char": "char(65)",
    "char_length": "char_length(t)",
    "character_length": "character_length(t)",
    "chr": "chr(65)",
    "coalesce": "coalesce(n, 0)",
    "concat": "concat(t, 'z')",
    "concat_ws": "concat_ws('-', t, 'z')",
    "contains": "contains(t, 'b')",
    "conv": "conv('ff', 16, 10)",
    "cos": "cos(x)",
    "cosh": "cosh(x)",
    "cot": "cot(x)",
    "crc32": "crc32(t)",
    "date": "date('2024-02-29')",
    "date_add": "date_add(d, 3)",
    "date_diff": "date_diff(d, DATE '2024-01-01')",
    "date_format": "date_format(d, 'yyyy/MM')",
    "date_sub": "date_sub(d, 3)",
    "date_trunc": "date_trunc('MONTH', s)",
    "datediff": "datediff(d, DATE '2024-01-01')",
    "day": "day(d)",
    "dayofmonth": "dayofmonth(d)",
    "dayofweek": "dayofweek(d)",
    "dayofyear": "dayofyear(d)",
    "degrees": "degrees(x)",
    "double": "double(n)",
    "e": "e()",
    "element_at": "element_at(array(n, 2), 1)",
    "endswith": "endswith(t, 'c')",
    "exp": "exp(x)",
    "expm1": "expm1(x)",
    "extract": "extract(YEAR FROM d)",
    "factorial": "factorial(5)",
    "find_in_set": "find_in_set('b', 'a,b')",
    "float": "float(n)",
    "floor": "floor(m)",
    "format_number": "format_number(m, 1)",
    "format_string": "format_string('%s!', t)",
    "from_unixtime": "from_unixtime(n)",
    "greatest": "greatest(n, 2)",
    "hash": "hash(n, t)",
    "hex": "hex(n)",
    "hour": "hour(s)",
    "hypot": "hypot(x, 2)",
    "if": "if(n > 1, 'a', 'b')",
    "ifnull": "ifnull(n, 0)",
    "initcap": "initcap(t)",
    "instr": "instr(t, 'b')",
    "int": "int(m)",
    "isnan": "isnan(x)",
    "isnotnull": "isnotnull(n)",
    "isnull": "isnull(n)",
    "last_day": "last_day(d)",
    "lcase": "lcase(t)",
    "least": "least(n, 2)",
    "left": "left(t, 2)",
    "length": "length(t)",
    "levenshtein": "levenshtein(t, 'abd')",
    "ln": "ln(2)",
    "locate": "locate('b', t)",
    "log": "log(2, 8)",
    "log10": "log10(x)",
    "log1p": "log1p(x)",
    "log2": "log2(x)",
    "lower": "lower(t)",
    "lpad": "lpad(t, 5, '*')",
    "ltrim": "ltrim(t)",
    "make_date": "make_date(2024, 2, 29)",
    "md5": "md5(t)",
    "minute": "minute(s)",
    "mod": "mod(n, 2)",
    "month": "month(d)",
    "months_between": "months_between(d, DATE '2024-01-01')",
    "nanvl": "nanvl(x, 0)",
    "negative": "negative(n)",
    "nullif": "nullif(n, 3)",
    "nvl": "nvl(n, 0)",
    "nvl2": "nvl2(n, 1, 0)",
    "octet_length": "octet_length(t)",
    "overlay": "overlay(t PLACING 'Z' FROM 2)",
    "pi": "pi()",
    "pmod": "pmod(n, 2)",
    "position": "position('b' IN t)",
    "positive": "positive(n)",
    "pow": "pow(n, 2)",
    "power": "power(n, 2)",
    "quarter": "quarter(d)",
    "radians": "radians(x)",
    "raise_error": "coalesce(1, raise_error(t))",
    "regexp_extract": "regexp_extract(t, '(b)', 1)",
    "regexp_replace": "regexp_replace(t, 'b', 'B')",
    "repeat": "repeat(t, 2)",
    "replace": "replace(t, 'b', 'B')",
    "reverse": "reverse(t)",
    "right": "right(t, 2)",
    "rint": "rint(x)",
    "round": "round(m, 1)",
    "rpad": "rpad(t, 5, '*')",
    "rtrim": "rtrim(t)",
    "second": "second(s)",
    "sha": "sha(t)",
    "sha1": "sha1(t)",
    "sha2": "sha2(t, 256)",
    "sign": "sign(n)",
    "signum": "signum(x)",
    "sin": "sin(x)",
    "sinh": "sinh(x)",
    "size": "size(array(n))",
    "smallint": "smallint(n)",
    "soundex": "soundex(t)",
    "split": "split(t, ',')",
    "split_part": "split_part(t, ',', 1)",
    "sqrt": "sqrt(x)",
    "startswith": "startswith(t, 'a')",
    "string": "string(n)",
    "substr": "substr(t, 2)",
    "substring": "substring(t, 1, 2)",
    "substring_index": "substring_index(t, ',', 1)",
    "tan": "tan(x)",
    "tanh": "tanh(x)",
    "to_date": "to_date('2024-02-29')",
    "to_timestamp": "to_timestamp('2024-02-29 01:02:03')",
    "translate": "translate(t, 'ab', 'xy')",
    "trim": "trim(t)",
    "trunc": "trunc(d, 'MM')",
    "try_add": "try_add(n, 1)",
    "try_divide": "try_divide(n, 0)",
    "try_multiply": "try_multiply(n, 2)",
    "try_subtract": "try_subtract(n, 1)",
    "ucase": "ucase(t)",
    "unhex": "unhex('41')",
    "upper": "upper(t)",
    "weekday": "weekday(d)",
    "weekofyear": "weekofyear(d)",
    "width_bucket": "width_bucket(x, 0, 10, 5)",
    "xxhash64": "xxhash64(n, t)",
    "year": "year(d)",
}

AGGREGATE_FUNCTIONS: Mapping[str, str] = {
    "avg": "avg(n)",
    "bit_and": "bit_and(n)",
    "bit_or": "bit_or(n)",
    "bit_xor": "bit_xor(n)",
    "bool_and": "bool_and(n > 1)",
    "bool_or": "bool_or(n > 1)",
    "corr": "corr(x, n)",
    "count": "count(n)",
    "count_if": "count_if(n > 1)",
    "covar_pop": "covar_pop(x, n)",
    "covar_samp": "covar_samp(x, n)",
    "grouping": "count(n)",
    "grouping_id": "count(n)",
    "kurtosis": "kurtosis(x)",
    "max": "max(n)",
    "median": "median(n)",
    "min": "min(n)",
    "percentile": "percentile(n, 0.5)",
    "skewness": "skewness(x)",
    "stddev": "stddev(n)",
    "stddev_pop": "stddev_pop(n)",
    "stddev_samp": "stddev_samp(n)",
    "sum": "sum(n)",
    "var_pop": "var_pop(n)",
    "var_samp": "var_samp(n)",
    "variance": "variance(n)",
}
"""Aggregates whose value depends on a bag of rows alone; those that add up doubles, up to the rounding of the order in
which rows are met (`compile.rounding`)."""

WINDOW_FUNCTIONS: Mapping[str, str] = {
    "cume_dist": "cume_dist()",
    "dense_rank": "dense_rank()",
    "first_value": "first_value(n)",
    "lag": "lag(n)",
    "last_value": "last_value(n)",
    "lead": "lead(n)",
    "nth_value": "nth_value(n, 2)",
    "ntile": "ntile(2)",
    "percent_rank": "percent_rank()",
    "rank": "rank()",
    "row_number": "row_number()",
}
"""Functions that have a value only in a window; aggregates may be used in windows too."""

READER_FUNCTIONS: Mapping[str, str] = {
    "any_value": "any_value(n)",
    "approx_count_distinct": "approx_count_distinct(n)",
    "array_agg": "array_agg(n)",
    "collect_list": "collect_list(n)",
    "collect_set": "collect_set(n)",
    "curdate": "curdate()",
    "current_date": "current_date()",
    "current_timestamp": "current_timestamp()",
    "first": "first(n)",
    "last": "last(n)",
    "mode": "mode(n)",
    "now": "now()",
    "rand": "rand()",
    "randn": "randn()",
    "random": "random()",
    "typeof": "typeof(m)",
    "unix_timestamp": "unix_timestamp()",
    "uuid": "uuid()",
}
"""What a reader's query may call besides: its rows are kept nowhere, so they may depend on the time and on chance."""

NOT_REPEATABLE_FUNCTIONS: frozenset[str] = frozenset(
    {
        "curdate",
        "current_catalog",
        "current_database",
        "current_date",
        "current_role",
        "current_schema",
        "current_time",
        "current_timestamp",
        "current_timezone",
        "current_user",
        "getdate",
        "input_file_block_length",
        "input_file_block_start",
        "input_file_name",
        "localtimestamp",
        "monotonically_increasing_id",
        "now",
        "rand",
        "randn",
        "random",
        "randstr",
        "session_user",
        "shuffle",
        "spark_partition_id",
        "unix_timestamp",
        "user",
        "uuid",
        "version",
    }
)


MAKE_ROWS = (exp.Explode, exp.ExplodeOuter, exp.Posexplode, exp.Inline)
"""Functions that make several rows of one."""


def is_called(call: exp.Func) -> bool:
    """Tell whether the author wrote this call: around the argument of year() and the like sqlglot puts its own casts.

    >>> import sqlglot
    >>> [is_called(call) for call in sqlglot.parse_one("SELECT year(d)", read="spark").find_all(exp.Func)]
    [True, False]
    """
    return not isinstance(call, (exp.TsOrDsToDate, exp.TimeStrToTime)) or "start" in call.meta


def spelled_name(call: exp.Func, sql: str) -> str:
    """Return the name of a function as the view's author wrote it, in lower case.

    >>> import sqlglot
    >>> sql = "SELECT nvl(a, 1)"
    >>> spelled_name(sqlglot.parse_one(sql, read="spark").find(exp.Coalesce), sql)
    'nvl'
    """
    if isinstance(call, exp.Anonymous):
        return str(call.this).lower()
    if "start" in call.meta:
        spelled = sql[call.meta["start"] : call.meta["end"] + 1].strip("`").lower()
        if spelled.isidentifier():
            return spelled
    found = find_call(call, sql)
    return call.sql_name().lower() if found is None else found[0]
