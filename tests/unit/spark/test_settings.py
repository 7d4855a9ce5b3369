"""Settings that results depend on hold in every session that is used, and only there."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headwater.deltas.on_spark import session_like, small_session
from headwater.errors import HeadwaterError
from headwater.spark.session import spark_session
from headwater.spark.settings import RULES, pin, pinned

GIVEN = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "Europe/Berlin",
    "spark.sql.caseSensitive": "true",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.CombineUnions",
    "spark.sql.shuffle.partitions": "7",
}


def test_a_session_that_is_given_keeps_its_settings_and_ours_beside_it_is_pinned(spark: SparkSession) -> None:
    given = spark.newSession()
    for key, value in GIVEN.items():
        given.conf.set(key, value)
    ours = spark_session(given=given)
    for session in (ours, session_like(ours), small_session(ours)):
        assert {key: session.conf.get(key) for key in pinned(GIVEN)} == pinned(GIVEN)
        assert "spark.sql.legacy.timeParserPolicy" not in session.conf.getAll
    assert ours.conf.get("spark.sql.shuffle.partitions") == "7", "what only speed depends on is the caller's"
    assert ours.conf.get(RULES).split(",")[0] == GIVEN[RULES]
    assert {key: given.conf.get(key) for key in GIVEN} == GIVEN
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
        small_session(ours).sql("SELECT 1 / 0").collect()
    assert spark_session(given=given) is ours


def test_a_session_of_ours_makes_others_by_itself(spark: SparkSession) -> None:
    from headwater.deltas import on_spark  # noqa: PLC0415 - its private function is asked

    assert not on_spark._own_settings(spark), "every new session has what is pinned, without a call for each"


@pytest.mark.parametrize("text", ["${env:PATH}", "${system:user.dir}", "${spark.app.name}", "${x}"])
def test_a_text_is_never_replaced_by_settings_or_the_environment(spark: SparkSession, text: str) -> None:
    for session in (spark, small_session(spark)):
        assert session.sql(f"SELECT '{text}' AS found").collect()[0].found == text


class Fixed:
    """The settings of a session that lets nobody change them."""

    def __init__(self, values: dict[str, str]) -> None:
        self.getAll = values

    def get(self, key: str) -> str | None:
        return {**pinned({}), **self.getAll}[key]

    def set(self, key: str, value: str) -> None:
        raise PySparkException(f"{key} cannot be {value}")

    def unset(self, key: str) -> None:
        raise PySparkException(f"{key} stays")


class Session:
    def __init__(self, values: dict[str, str]) -> None:
        self.conf = Fixed(values)


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ({"spark.sql.ansi.enabled": "false"}, "set spark.sql.ansi.enabled to true"),
        ({"spark.sql.legacy.sizeOfNull": "true"}, "remove spark.sql.legacy.sizeOfNull"),
        ({RULES: "a.Rule"}, f"set {RULES} to a.Rule,org"),
    ],
)
def test_a_session_that_cannot_be_pinned_is_refused(said: dict[str, str], hint: str) -> None:
    session: Any = Session(pinned({}) | said)
    with pytest.raises(HeadwaterError) as refused:
        pin(session)
    assert refused.value.code == "HW-604"
    assert hint in refused.value.hint


def test_a_session_that_is_right_need_not_be_changed() -> None:
    for said in ({"spark.sql.ansi.enabled": "TRUE", RULES: pinned({})[RULES]}, {}):
        session: Any = Session(said)
        pin(session)
