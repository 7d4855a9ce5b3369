"""Every metric is fed by an event or by the status, and the dashboard and the alerts name only those that exist."""

from __future__ import annotations

# ruff: noqa: S310
import json
import re
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner
from written_project import TICKS, write_project

import headwater
from headwater.api.metrics_endpoint import metrics_of, metrics_text, serving_metrics
from headwater.cli.app import app
from headwater.errors import HeadwaterError
from headwater.model.position import Position, Tick
from headwater.model.relation import RelationName
from headwater.observe import events
from headwater.observe.metrics import METRICS, Kind, Metrics, levels_of

ROOT = Path(__file__).resolve().parents[3]
SALES = RelationName(source="shop", name="sales")
AT = Position(source="shop", history="1:1", offset=7)
ERROR = HeadwaterError("it is gone", code="HW-999")
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(text: str) -> Samples:
    return {
        (one.name, tuple(sorted(one.labels.items()))): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def happened(metrics: Metrics) -> None:
    long_ago = datetime.now(UTC) - timedelta(seconds=3)
    for event in (
        events.TransactionsAccepted(
            source="shop",
            first=Tick(1),
            last=Tick(9),
            row_count=20,
            position=AT,
            transaction_count=5,
            committed_at=long_ago,
        ),
        events.TransactionsAccepted(
            source="stock", first=Tick(2), last=Tick(11), row_count=1, position=AT, committed_at=long_ago
        ),
        events.ProbeAnswered(
            view="v",
            relation=SALES,
            probe_count=2,
            key_count=3,
            row_count=4,
            byte_count=500,
            corrected_row_count=6,
            seconds=0.2,
        ),
        events.ViewComputed(view="v", lo=Tick(0), hi=Tick(9), changed_rows=7, read_rows={SALES: 8}, row_count=9),
        events.BatchCommitted(lo=Tick(0), hi=Tick(10), row_count=12, seconds={"spark": 0.3, "commit": 0.1}),
        events.ViewStopped(view="v", tick=Tick(10), error=ERROR),
        events.SourceDisconnected(source="shop", error=ERROR, retry_in_seconds=1.0),
        events.ViewPublished(view="v", tick=Tick(10), rows_added=1, rows_removed=0, seconds=0.1),
        events.PublishFailed(view="v", error=ERROR),
        events.Idle(tick=Tick(10)),
    ):
        metrics(event)


def test_events_are_counted(tmp_path: Path) -> None:
    metrics = metrics_of(headwater.open(write_project(tmp_path / "shops")))
    happened(metrics)
    with serving_metrics(metrics, 0) as address, urllib.request.urlopen(address, timeout=30) as answer:
        found = samples(answer.read().decode())
    assert address.startswith("http://127.0.0.1:")
    shop, view, both = (("source", "shop"),), (("view", "v"),), (("source", "shop"), ("view", "v"))
    assert found["headwater_transactions_accepted_total", shop] == 5
    assert found["headwater_rows_accepted_total", shop] == 20
    assert found["headwater_batches_total", ()] == 1
    assert found["headwater_batch_part_seconds_sum", (("part", "spark"),)] == 0.3
    assert found["headwater_probe_bytes_total", both] == 500
    assert found["headwater_corrected_rows_total", both] == 6
    assert found["headwater_view_read_rows_total", view] == 8
    assert found["headwater_freshness_seconds_count", shop] == 1
    assert 3 <= found["headwater_freshness_seconds_sum", shop] < 30
    assert ("headwater_freshness_seconds_count", (("source", "stock"),)) not in found, "tick 11 is not committed yet"
    for one in METRICS:
        if one.kind is not Kind.GAUGE:
            suffix = "_count" if one.kind is Kind.HISTOGRAM else ""
            assert any(name == f"{one.name}{suffix}" and value for (name, _), value in found.items()), one.name


def test_levels_are_those_of_the_status(tmp_path: Path) -> None:
    project = headwater.open(write_project(tmp_path / "shops", stopped=True))
    found = samples(metrics_text(project).decode())
    assert found["headwater_log_last_tick", ()] == TICKS
    assert found["headwater_view_frontier_tick", (("view", "sold"),)] == TICKS // 2
    assert found["headwater_view_lag_ticks", (("view", "sold"),)] == TICKS // 2
    assert found["headwater_view_stopped", (("view", "sold"),)] == 1
    assert found["headwater_view_stopped", (("view", "totals"),)] == 0
    assert found["headwater_view_lag_seconds", (("view", "totals"),)] == 0
    first = project._warehouse().log.transactions(None, Tick(TICKS // 2), Tick(TICKS // 2 + 1))[0][1]
    age = (datetime.now(UTC) - first.committed_at).total_seconds()
    assert found["headwater_view_lag_seconds", (("view", "sold"),)] == pytest.approx(age, abs=60)
    assert found["headwater_source_up", (("source", "shop"),)] == 0


def test_every_level_is_read(tmp_path: Path) -> None:
    project = headwater.open(write_project(tmp_path / "shops"))
    from headwater.api.metrics_endpoint import _levels  # noqa: PLC0415 - what the endpoint reads

    levels = _levels(project)
    assert levels is not None
    gauges = {one.name.removeprefix("headwater_") for one in METRICS if one.kind is Kind.GAUGE}
    assert set(levels_of(levels)) == gauges


def test_without_a_warehouse_there_are_no_levels(tmp_path: Path) -> None:
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "v.sql").write_text("SELECT 1 AS one")
    (tmp_path / "headwater.toml").write_text('[project]\nname = "empty"\n')
    found = samples(metrics_text(headwater.open(tmp_path)).decode())
    assert not [name for name, _ in found if name.startswith("headwater_log")]


def named(text: str) -> set[str]:
    """Return the metrics that a text names, a histogram by its own name."""
    kinds = {one.name: one.kind for one in METRICS}
    found = set()
    for name in re.findall(r"\bheadwater_\w+", text):
        whole = re.sub(r"_(bucket|sum|count)$", "", name)
        found.add(whole if kinds.get(whole) is Kind.HISTOGRAM else name)
    return found


def test_the_dashboard_and_the_alerts_name_metrics_that_exist() -> None:
    folder = ROOT / "examples" / "monitoring"
    dashboard = json.loads((folder / "dashboard.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    labels = {name for query in queries for name in re.findall(r"by \(([^)]*)\)", query)}
    known = {one.name for one in METRICS}
    assert named("\n".join(queries)) <= known
    assert {part.strip() for one in labels for part in one.split(",")} <= {
        "le",
        *(label for one in METRICS for label in one.labels),
    }
    alerts = (folder / "alerts.yml").read_text()
    assert named(alerts) <= known
    assert len(re.findall(r"- alert:", alerts)) == len(re.findall(r"\n        expr: ", alerts)) > 8
    assert named("headwater_nothing_of_the_kind > 1") - known


def test_a_port_that_is_taken_is_refused(tmp_path: Path) -> None:
    metrics = metrics_of(headwater.open(write_project(tmp_path / "shops")))
    with serving_metrics(metrics, 0) as address:
        port = int(re.findall(r":([0-9]+)/", address)[0])
        with pytest.raises(HeadwaterError) as refused, serving_metrics(metrics, port):
            pass
    assert refused.value.code == "HW-185"


def test_without_the_package_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.observe.metrics.importlib.util.find_spec", lambda _: None)
    done = CliRunner().invoke(app, ["run", "--metrics", "0", "--project", str(write_project(tmp_path / "shops"))])
    assert done.exit_code == 1
    assert "headwater[metrics]" in done.stderr
