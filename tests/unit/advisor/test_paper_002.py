"""Paper 002's formulas: the numbers that follow from them as printed, and what becomes of its claims when corrected."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headwater.advisor.kinds import corrected, printed
from headwater.advisor.kinds.parameters import Case, MaintenanceKind, Parameters
from headwater_lab.papers.space_and_rows import crossings

DEFAULT = Parameters()
SMR, NSMR, SMIM, NSMIM = MaintenanceKind


def test_rows_accessed_at_the_defaults() -> None:
    assert printed.rows(SMR, DEFAULT).total == pytest.approx(8.28e18, rel=1e-3)
    assert printed.rows(NSMR, DEFAULT).total == pytest.approx(8.28e18, rel=1e-3)
    assert printed.rows(NSMIM, DEFAULT).total == pytest.approx(5.44e13, rel=1e-3)
    assert printed.rows(SMIM, DEFAULT).total == pytest.approx(7.67e10, rel=1e-3)


def test_where_collect_outgrows_the_replicas() -> None:
    as_printed, rows_against_bytes, once, *_ = (crossing.rows for crossing in crossings())
    assert as_printed == pytest.approx(9.25e6, rel=1e-3)
    assert rows_against_bytes == pytest.approx(6.07e7, rel=1e-3)
    assert once == pytest.approx(5.63e8, rel=2e-3)


def test_interference_has_no_influence_on_collect() -> None:
    first, second = printed.collected(DEFAULT)
    assert first == pytest.approx(1.19e11, rel=1e-2)
    assert second == pytest.approx(5.1e-6, rel=1e-2)
    assert printed.collected(replace(DEFAULT, interfering=100))[0] == first


def test_the_order_of_figure_9_is_not_general() -> None:
    *_, begins, ends = (crossing.rows for crossing in crossings())
    assert begins == pytest.approx(904, rel=1e-3)
    assert ends == pytest.approx(2.46e5, rel=2e-3)
    selective, loose = replace(DEFAULT, selectivity=1e-4), replace(DEFAULT, join_factor=1e-3)
    assert printed.rows(NSMIM, selective).total / printed.rows(SMIM, selective).total == pytest.approx(0.35, abs=5e-3)
    assert printed.rows(NSMIM, loose).total / printed.rows(SMIM, loose).total == pytest.approx(0.48, abs=5e-3)


def test_counted_once_asking_accesses_no_more_rows_than_replicas() -> None:
    assert corrected.rows(NSMIM, DEFAULT).total / corrected.rows(SMIM, DEFAULT).total == pytest.approx(0.9986, abs=5e-5)
    for power in range(3, 10):
        given = replace(DEFAULT, relation_rows=10.0**power)
        assert corrected.rows(NSMIM, given).total < corrected.rows(SMIM, given).total


def test_an_update_of_one_row_has_an_absurd_answer() -> None:
    assert printed.answer_rows(DEFAULT, 1) == pytest.approx(1.68e8, rel=2e-3)
    assert DEFAULT.partners == pytest.approx(7.9e7, rel=3e-3)


def test_recomputing_by_asking_needs_the_least_space_whatever_the_abstract_says() -> None:
    for case in Case:
        spaces = {kind: printed.space(kind, DEFAULT, case) for kind in MaintenanceKind}
        assert min(spaces.values()) == spaces[NSMR]
    assert printed.space(SMIM, DEFAULT) > 9e5 * printed.space(NSMR, DEFAULT)


def test_the_worst_case_is_what_the_tables_print() -> None:
    of = replace(DEFAULT, relation_rows=7.0, relation_count=4, auxiliary_count=2, update_rows=2.0, interfering=3.0)
    card, changed, view = 7.0, 2.0, 914.0
    powers = [card**power for power in range(4)]
    assert printed.rows(SMR, of, Case.WORST).total == pytest.approx(view + changed + card * (1 + sum(powers)))
    assert printed.rows(NSMR, of, Case.WORST).in_source == pytest.approx(card * sum(powers))
    assert printed.rows(SMIM, of, Case.WORST).total == pytest.approx(view + card + changed * (2 + sum(powers[1:])))
    by_table = sum(
        3.0 ** (k - 1)
        * changed**k
        * sum(powers[: 4 - k])
        * (changed + sum(changed ** (i + 2) for i in range(k - 1)) + changed**k * card * sum(powers[: 4 - k]))
        for k in range(1, 4)
    )
    assert printed.rows(NSMIM, of, Case.WORST).in_source == pytest.approx(by_table)
    collect = sum(3.0 ** (k - 1) * changed ** (2 * k) * card ** (4 - k) * sum(powers[: 4 - k]) for k in range(1, 4))
    assert printed.space(NSMIM, of, Case.WORST) == pytest.approx(view * 43 + collect * 43)


def test_without_interference_the_printed_view_visits_are_infinite() -> None:
    calm = replace(DEFAULT, interfering=0.0)
    assert printed.rows(NSMIM, calm).in_warehouse == float("inf")
    assert corrected.rows(NSMIM, calm).in_warehouse == 914


def test_all_updates_cost_so_many_times_one() -> None:
    many = replace(DEFAULT, update_count=100)
    for kind in MaintenanceKind:
        assert printed.rows(kind, many).total == pytest.approx(100 * printed.rows(kind, DEFAULT).total)
        assert corrected.rows(kind, many).total == pytest.approx(100 * corrected.rows(kind, DEFAULT).total)
