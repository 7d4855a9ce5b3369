"""Settings of Spark: those that results depend on are pinned on every session that is used.

A session may come with settings of its own, from `spark-defaults.conf`, from the server of Spark Connect, or from the
program that made it. A view must not mean something else there. So `pin` sets what results depend on, reads it back,
and refuses a session that does not let it. What only speed depends on is set where nobody said otherwise, and only for
a session that is built here.
"""

from __future__ import annotations

from collections.abc import Mapping

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headwater.errors import HeadwaterError

RULES = "spark.sql.optimizer.excludedRules"
_EXCLUDED = "org.apache.spark.sql.catalyst.optimizer.PushProjectionThroughLimitAndOffset"
"""Spark 4.3 moves a projection with a linked sub-query below LIMIT, and then drops the ORDER BY that it stood on."""
_LEGACY = "spark.sql.legacy."
"""What brings the behaviour of earlier versions back, for nearly every function. None of it may be set."""

_PINNED = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.ansi.relationPrecedence": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.charAsVarchar": "false",
    "spark.sql.crossJoin.enabled": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.function.concatBinaryAsString": "false",
    "spark.sql.function.eltOutputAsString": "false",
    "spark.sql.groupByAliases": "true",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # the default of old, INT96, turned 9999 into 1816
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.variable.substitute": "false",  # it puts the environment and settings into texts, in literals too
}

FAST = {
    "spark.ui.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
    "spark.sql.execution.arrow.localRelationThreshold": "256KB",
    "spark.sql.codegen.cache.maxEntries": "5000",
}
"""What suits small batches: few shuffle partitions, no user interface, only small tables turned into rows by the driver
(`deltas.on_spark`), no adaptive execution, which takes a third of a small query's time, and room to keep the code of
all queries: they are the same in every batch, and Spark compiles again what it has forgotten (by default it keeps a
hundred pieces, and a view of five segments has more)."""


def pinned(said: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that results depend on, for a session of which these were said.

    >>> pinned({"spark.sql.optimizer.excludedRules": "a.Rule"})["spark.sql.optimizer.excludedRules"]
    'a.Rule,org.apache.spark.sql.catalyst.optimizer.PushProjectionThroughLimitAndOffset'
    """
    rules = [rule.strip() for rule in said.get(RULES, "").split(",") if rule.strip()]
    return _PINNED | {RULES: ",".join(rules if _EXCLUDED in rules else [*rules, _EXCLUDED])}


def pin(session: SparkSession) -> None:
    """Set what results depend on in a session. One that does not let it is refused."""
    said = session.conf.getAll
    wanted: dict[str, str | None] = {**pinned(said), **dict.fromkeys(key for key in said if key.startswith(_LEGACY))}
    for key, value in wanted.items():
        if _is(said.get(key) or _default(session, key), value):
            continue
        apply_setting(session, key, value)
        found = session.conf.getAll.get(key) or (None if value is None else _default(session, key))
        if not _is(found, value):
            raise _not_ours(key, found, value)


def apply_setting(session: SparkSession, key: str, value: str | None) -> None:
    """Set a setting of a session, or take it back. Where that is not allowed it stays as it is."""
    try:
        if value is None:
            session.conf.unset(key)
        else:
            session.conf.set(key, value)
    except (PySparkException, Py4JJavaError):
        return


def _default(session: SparkSession, key: str) -> str | None:
    """Return what a setting is that nobody set, None if this Spark does not know it."""
    try:
        return session.conf.get(key)
    except (PySparkException, Py4JJavaError):
        return None


def _is(found: str | None, wanted: str | None) -> bool:
    return found == wanted or (found is not None and wanted is not None and found.lower() == wanted.lower())


def _not_ours(key: str, found: str | None, wanted: str | None) -> HeadwaterError:
    do = f"remove {key}" if wanted is None else f"set {key} to {wanted}"
    return HeadwaterError(
        f"Spark does not let {key} be {'unset' if wanted is None else wanted}",
        code="HW-604",
        detail=f"it is {found}, and views would mean something else with it",
        hint=f"{do} where this Spark is configured: in spark-defaults.conf, at the server of Spark Connect, or in the "
        "program that makes the session",
    )
