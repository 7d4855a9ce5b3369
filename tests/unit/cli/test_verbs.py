from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Self
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

from headwater.advisor.analysis import AnalyzeResult, KindCost, MeasuredCost, ViewAnalysis
from headwater.advisor.kinds.parameters import Parameters, Rows
from headwater.api.results import QueryResult
from headwater.cli.app import app
from headwater.cli.init import create_project
from headwater.deltas.compare import difference
from headwater.errors import ConfirmationNeeded, SourceRefused, SourceUnavailable, several_errors
from headwater.explain.result import ExplainResult
from headwater.judge.grade import Verdict
from headwater.judge.result import CheckResult, ViewCheck
from headwater.model.guarantee import Guarantee
from headwater.model.moment import AtPosition, AtTick, Moment
from headwater.model.position import Position, Tick
from headwater.observe.events import BatchCommitted, Listener, ignore_event
from headwater.observe.status import (
    CommitStatus,
    HistoryEntry,
    HistoryResult,
    MaintainerStatus,
    MemoryStatus,
    MessageCount,
    RefreshedView,
    RefreshResult,
    ReleaseResult,
    SelfMaintenanceCount,
    SourceState,
    SourceStatus,
    StatusResult,
    Stop,
    ViewStatus,
    WaitingPart,
)
from headwater.project.file import load
from headwater.project.plan_result import (
    Action,
    OwnerSql,
    OwnerSqlResult,
    PlanResult,
    PlanStep,
    RunEnd,
    RunResult,
    Subject,
)
from headwater.project.teardown_result import Dropped, TeardownResult

AT = datetime(2026, 11, 15, 10, 30, tzinfo=UTC)
RIGHT = Verdict(guarantee=Guarantee.COMPLETE, states_checked=42)
WRONG = Verdict(
    guarantee=Guarantee.CONVERGENT,
    states_checked=42,
    first_bad_tick=Tick(7),
    difference=difference({(1, "pen"): 1}, {}),
)


WAITING = WaitingPart(id="transfer 7", arrived=("shop",), missing=("staff",), committed_at=AT, age_seconds=61.4)


@dataclass
class MadeUpProject:
    """An open project that answers what a test tells it to; only for exit codes and rendering."""

    verdict: Verdict = RIGHT
    raises: Exception | None = None
    failed: tuple[Dropped, ...] = ()
    loses: tuple[str, ...] = ()
    listener: Listener = ignore_event
    asked: list[object] = field(default_factory=list)

    def opener(self, path: Path, listener: Listener) -> MadeUpProject:
        self.asked.append(path)
        self.listener = listener
        if self.raises is not None:
            raise self.raises
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.asked.append("closed")

    def plan(self, *, rebuild: tuple[str, ...]) -> PlanResult:
        self.asked.append(rebuild)
        return PlanResult(
            steps=(
                PlanStep(action=Action.CREATE, subject=Subject.SOURCE, name="shop", reason="not followed yet"),
                PlanStep(action=Action.BOOTSTRAP, subject=Subject.REPLICA, name="shop.sales", row_estimate=12_000),
                PlanStep(action=Action.KEEP, subject=Subject.VIEW, name="stock"),
            ),
            owner_sql=(OwnerSql(source="shop", statement="ALTER TABLE sales REPLICA IDENTITY FULL;", ours=False),),
            warnings=('"shop.sales" has no index on product_id',),
        )

    def owner_sql(self, source: str) -> OwnerSqlResult:
        refusals = (SourceRefused(f'source "{source}" is a standby', code="HW-324"),) if self.failed else ()
        return OwnerSqlResult(source=source, statements=("ALTER TABLE a REPLICA IDENTITY FULL",), refusals=refusals)

    def run(
        self, *, until_idle: bool, ticks: int | None, rebuild: tuple[str, ...], yes: object, fail_fast: bool
    ) -> RunResult:
        self.asked.append((until_idle, ticks, fail_fast, *rebuild))
        if self.loses and not yes:
            raise ConfirmationNeeded("history goes", code="HW-156", detail="…", hint="…", views=self.loses)
        self.asked.append(yes)
        self.listener(BatchCommitted(lo=Tick(3), hi=Tick(7), row_count=12, seconds={"spark": 0.2}))
        return RunResult(lo=Tick(3), hi=Tick(7), commit_count=1, row_count=12, seconds=1.5, ended=RunEnd.IDLE)

    def status(self) -> StatusResult:
        return StatusResult(
            warehouse=Path("warehouse"),
            memory=MemoryStatus(
                limit_bytes=2 * 10**9,
                used_bytes=90_600_000,
                arrow_bytes=88_000_000,
                captures_bytes=1_000_000,
                tail_bytes=2_000_000,
                journal_bytes=3_000_000,
                rows_bytes=4_000_000,
                batch_bytes=80_600_000,
                mapped_bytes=12_345_000_000,
                spark_limit_bytes=3 * 10**9,
            ),
            sources=(
                SourceStatus(
                    name="shop",
                    state=SourceState.FOLLOWING,
                    positions=(Position(source="shop", history="71:1", offset=0x16B3748),),
                    lag_bytes=1234,
                    lag_seconds=0.25,
                ),
                SourceStatus(
                    name="staff", state=SourceState.UNAVAILABLE, last_error="connection refused", retry_in_seconds=4
                ),
            ),
            views=(
                ViewStatus(name="sales", guarantee=Guarantee.COMPLETE, birth=Tick(1), frontier=Tick(7), row_count=1000),
                ViewStatus(
                    name="ratio",
                    guarantee=Guarantee.STRONG,
                    birth=Tick(1),
                    frontier=Tick(5),
                    refresh="every 10 min",
                    due_at=AT,
                    stopped=Stop(tick=Tick(6), code="HW-401", summary="division by zero", hint="use try_divide"),
                ),
            ),
            last_commit=CommitStatus(tick=Tick(7), committed_at=AT),
            maintainer=MaintainerStatus(holder="host:42", epoch=3, alive=True, seen_at=AT),
            log_first=Tick(1),
            log_last=Tick(9),
            messages=(
                MessageCount(source="shop", view="sales", probe_count=3, key_count=40, row_count=1500, byte_count=9000),
            ),
            messages_since=AT,
            waiting_parts=(WAITING,),
            self_maintenance=(SelfMaintenanceCount(view="sales", batch_count=9, unasked_count=8, known_key_count=41),),
        )

    def query(self, sql: str, *, at: Moment | None, after: AtPosition | None) -> QueryResult:
        self.asked.append((sql, at, after))
        columns = {"product": ["pen", None], "amount": [Decimal("15.00"), Decimal("7.50")], "rate": [0.5, float("nan")]}
        return QueryResult(tick=Tick(7), table=pa.table(columns))

    def history(self, view: str) -> HistoryResult:
        entries = tuple(
            HistoryEntry(
                lo=Tick(lo),
                hi=Tick(hi),
                committed_at=AT,
                rows_added=5,
                rows_removed=2,
                asked=(MessageCount(source="shop", view=view, probe_count=4, row_count=1200, corrected_row_count=7),),
                spark_job_count=3,
                seconds={"spark": 0.25},
            )
            for lo, hi in ((1, 2), (2, 7))
        )
        return HistoryResult(view=view, birth=Tick(1), commits=entries)

    def explain(self, view: str) -> ExplainResult:
        data = {"view": view, "relations": ["shop.sales"]}
        return ExplainResult(view=view, summary=("verdict      good",), text=f"{view}\n└─ join", data=data)

    def check(self, view: str | None, *, ticks: int | None, steps: bool) -> CheckResult:
        self.asked.append(("check", ticks, *(["steps"] if steps else [])))
        one = ViewCheck(view=view or "sales", promised=Guarantee.COMPLETE, tick=Tick(7), verdict=self.verdict)
        return CheckResult(views=(one,))

    def release(self, global_id: str) -> ReleaseResult:
        self.asked.append(("release", global_id))
        return ReleaseResult(released=WAITING, maintained=False)

    def refresh(self, *views: str) -> RefreshResult:
        self.asked.append(("refresh", *views))
        brought = tuple(RefreshedView(name=name, lo=Tick(3), hi=Tick(7)) for name in views)
        return RefreshResult(views=brought, maintained=True, seconds=0.4)

    def analyze(self, view: str | None) -> AnalyzeResult:
        self.asked.append(("analyze", view))
        found = MeasuredCost(
            space=9000, rows_in_warehouse=40, rows_in_source=0, probe_count=0, unasked_count=2, seconds=0.5, agrees=True
        )
        rows = Rows(in_warehouse=1200.0, in_source=34.0)
        kinds = (
            KindCost(
                kind="SMR", maintenance="recompute-self", in_use=False, space=8000.0, predicted=rows, because="no"
            ),
            KindCost(kind="SMIM", maintenance="self", in_use=True, predicted=rows, read_rows=rows, measured=found),
        )
        one = ViewAnalysis(
            view=view or "sales", batch_count=2, tick_count=9, changed_rows=30, parameters=Parameters(), kinds=kinds
        )
        return AnalyzeResult(views=(one,))

    def teardown(self, *, sources: tuple[str, ...]) -> TeardownResult:
        self.asked.append(("teardown", *sources))
        dropped = (Dropped(source="shop", what="slot headwater_shop"),)
        return TeardownResult(dropped=dropped, failed=self.failed, warehouse=Path("warehouse"))


READING_VERBS = [
    ["plan"],
    ["run", "--until-idle"],
    ["status"],
    ["query", "SELECT 1"],
    ["history", "sales"],
    ["explain", "sales"],
    ["check"],
    ["release", "transfer 7"],
    ["refresh", "sales", "ratio"],
    ["analyze"],
]


def invoke(project: MadeUpProject, *arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), obj=project.opener)


@pytest.mark.parametrize("verb", READING_VERBS)
def test_json_is_one_document_and_nothing_else(verb: list[str]) -> None:
    result = invoke(MadeUpProject(), *verb, "--json")
    assert result.exit_code == 0, result.output
    assert isinstance(json.loads(result.stdout), dict)
    assert result.stderr == ""


@pytest.mark.parametrize("verb", READING_VERBS)
def test_refused_is_1_and_broke_is_2(verb: list[str]) -> None:
    refused = MadeUpProject(raises=SourceUnavailable("no answer", code="HW-301", detail="refused", hint="start it"))
    result = invoke(refused, *verb)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "no answer [HW-301]\n  why: refused\n  do:  start it\n"
    as_json = invoke(refused, *verb, "--json")
    assert as_json.exit_code == 1
    error = {"summary": "no answer", "detail": "refused", "hint": "start it", "code": "HW-301"}
    assert json.loads(as_json.stdout) == {"error": error}

    broke = MadeUpProject(raises=ZeroDivisionError("division by zero"))
    result = invoke(broke, *verb)
    assert result.exit_code == 2
    assert "ZeroDivisionError: division by zero" in result.stderr
    assert "Traceback" not in result.stderr
    assert "Traceback" in invoke(broke, *verb, "--debug").stderr
    assert json.loads(invoke(broke, *verb, "--json").stdout)["error"]["code"] == "HW-999"


def test_plan_shows_what_will_happen_and_what_the_owner_has_to_do() -> None:
    text = invoke(MadeUpProject(), "plan").stdout
    assert re.search(r"create +source shop +not followed yet", text)
    assert re.search(r"bootstrap +replica shop.sales +about 12,000", text)
    assert "kept as they are: stock" in text
    assert "ALTER TABLE sales REPLICA IDENTITY FULL;  -- at shop" in text
    assert 'warning: "shop.sales" has no index on product_id' in text
    project = MadeUpProject()
    invoke(project, "plan", "--rebuild", "stock", "--rebuild", "sales")
    assert project.asked[1:] == [("stock", "sales"), "closed"]


def test_run_passes_its_limits_on_and_reports_on_standard_error() -> None:
    project = MadeUpProject()
    result = invoke(project, "run", "--ticks", "5", "-p", "somewhere")
    assert project.asked == [Path("somewhere"), (False, 5, False), False, "closed"]
    assert result.stdout == "idle at tick 7: 4 ticks in 1 commit, 12 view rows changed, 1.5 s\n"
    assert result.stderr == "committed ticks 4 to 7: 12 rows in 0.20 s (spark 0.20)\n"


@pytest.mark.parametrize(
    ("person", "arguments", "answer", "code", "agreed"),
    [
        (False, [], "", 1, []),
        (False, ["--yes"], "", 0, [True]),
        (True, [], "n\n", 1, []),
        (True, [], "y\n", 0, [("stock",)]),
        (True, ["--json"], "y\n", 1, []),
        (True, ["--yes"], "", 0, [True]),
    ],
)
def test_run_asks_before_history_goes(
    monkeypatch: pytest.MonkeyPatch, person: bool, arguments: list[str], answer: str, code: int, agreed: list[object]
) -> None:
    monkeypatch.setattr("headwater.cli.run.may_ask", lambda *, as_json: person and not as_json)
    project = MadeUpProject(loses=("stock",))
    result = CliRunner().invoke(app, ["run", *arguments], obj=project.opener, input=answer)
    assert result.exit_code == code, result.output
    assert [one for one in project.asked if one is True or one == ("stock",)] == agreed
    assert ("HW-156" in result.output) is (code == 1 and not answer.startswith("n"))
    assert ("history goes" in result.output) is (not arguments or code == 1)


def test_run_can_be_asked_to_fail_fast() -> None:
    project = MadeUpProject()
    invoke(project, "run", "--fail-fast")
    assert project.asked[1] == (False, None, True)


def test_status() -> None:
    text = invoke(MadeUpProject(), "status").stdout
    assert "tick 7, committed 2026-11-15 10:30:00+00:00\nmaintained by host:42\n" in text
    assert re.search(r"shop +following +shop:0/16B3748 +1,234 +0.2", text)
    assert re.search(r"sales +complete +1 +7 +1,000", text)
    assert "asked since 2026-11-15 10:30:00+00:00\n" in text
    assert re.search(r"shop +sales +3 +40 +1,500 +9,000 +0", text)
    assert 'source "staff": connection refused (trying again in 4 s)' in text
    assert 'view "ratio" stopped at tick 6: division by zero\n  do:  use try_divide' in text
    parts = "captures 1 MB, log 2 MB, journal 3 MB, rows 4 MB, batch 81 MB"
    assert f"memory: 91 MB of 2,000 MB ({parts}); mapped 12,345 MB; Spark may use 3,000 MB\n" in text
    data = json.loads(invoke(MadeUpProject(), "status", "--json").stdout)
    assert (data["memory"]["used_bytes"], data["memory"]["limit_bytes"]) == (90_600_000, 2 * 10**9)
    assert data["sources"][0]["positions"] == ["shop:0/16B3748"]
    assert (data["sources"][0]["lag_bytes"], data["sources"][0]["lag_seconds"]) == (1234, 0.25)
    assert data["messages"][0]["byte_count"] == 9000
    assert data["views"][1]["stopped"]["code"] == "HW-401"
    assert data["views"][1]["guarantee"] == "strong"


def test_status_shows_what_waits_and_release_says_when_it_is_done() -> None:
    shown = invoke(MadeUpProject(), "status").stdout
    assert "global transactions that wait for a part" in shown
    assert "transfer 7" in shown
    assert "headwater release ID" in shown
    [waiting] = json.loads(invoke(MadeUpProject(), "status", "--json").stdout)["waiting_parts"]
    assert (waiting["id"], waiting["missing"], waiting["age_seconds"]) == ("transfer 7", ["staff"], 61.4)
    project = MadeUpProject()
    released = invoke(project, "release", "transfer 7").stdout
    assert ("release", "transfer 7") in project.asked
    assert 'released "transfer 7"' in released
    assert "next `headwater run`" in released


def test_status_shows_when_views_are_due_and_what_was_known_without_asking() -> None:
    text = invoke(MadeUpProject(), "status").stdout
    assert re.search(r"sales +complete +1 +7 +1,000 +continuous\n", text)
    assert re.search(r"ratio +strong +1 +5 +every 10 min, (now|next 2026-11-15 10:30:00)", text)
    assert re.search(r"view +batches +without asking +keys known\nsales +9 +8 +41\n", text)


def test_refresh_says_from_where_to_where() -> None:
    project = MadeUpProject()
    text = invoke(project, "refresh", "sales", "ratio").stdout
    assert ("refresh", "sales", "ratio") in project.asked
    assert re.search(r"ratio +3 +7\nup to date, by the maintainer that runs, 0.4 s\n", text)


def test_analyze_shows_what_was_predicted_and_measured_and_writes_it_as_a_page(tmp_path: Path) -> None:
    text = invoke(MadeUpProject(), "analyze").stdout
    assert re.search(r"SMR +recompute-self +8,000 +1,234\n", text)
    assert re.search(r"SMIM \* +self +9,000 +1,234 +1,234 +40 +0 +0 +2 +0.50 +yes", text)
    assert "SMR: not measured, no" in text
    written = invoke(MadeUpProject(), "analyze", "ratio", "--to", str(tmp_path / "page"))
    assert f"wrote {tmp_path / 'page' / 'index.html'}" in written.stdout
    assert "<td>recompute-self</td>" in (tmp_path / "page" / "index.html").read_text()
    drawn = ET.parse(tmp_path / "page" / "ratio.svg")  # noqa: S314 - we wrote it
    told = {one.text for one in drawn.iter("{http://www.w3.org/2000/svg}title")}
    assert {"SMIM, measured: 40 rows", "SMIM, measured: 0.5 seconds"} <= told


def test_query_reads_moments_and_keeps_numbers_exact() -> None:
    project = MadeUpProject()
    text = invoke(project, "query", "SELECT 1", "--at", "5", "--after", "shop:0/1F").stdout
    assert project.asked[1] == ("SELECT 1", AtTick(tick=5), AtPosition(source="shop", text="0/1F"))
    assert text.splitlines() == [
        "product  amount  rate",
        "pen       15.00   0.5",
        "NULL       7.50   nan",
        "2 rows at tick 7",
    ]
    assert "1 of them not shown" in invoke(project, "query", "SELECT 1", "--limit", "1").stdout
    data = json.loads(invoke(project, "query", "SELECT 1", "--json").stdout)
    assert data["tick"] == 7
    assert data["table"]["rows"] == [["pen", "15.00", 0.5], [None, "7.50", "NaN"]]


def test_a_bad_moment_is_refused_before_anything_is_asked() -> None:
    project = MadeUpProject()
    assert invoke(project, "query", "SELECT 1", "--at", "noon").exit_code == 1
    assert invoke(project, "query", "SELECT 1", "--after", "7").exit_code == 1
    assert project.asked == [Path(), "closed"] * 2


def test_owner_s_statements_stand_alone_on_standard_output() -> None:
    result = invoke(MadeUpProject(), "plan", "--sql", "shop")
    assert (result.exit_code, result.stdout) == (0, "ALTER TABLE a REPLICA IDENTITY FULL;\n")
    lacking = MadeUpProject(failed=(Dropped(source="shop", what="x"),))
    result = invoke(lacking, "plan", "--sql", "shop")
    assert (result.exit_code, result.stdout) == (1, "ALTER TABLE a REPLICA IDENTITY FULL;\n")
    assert "HW-324" in result.stderr
    result = invoke(lacking, "plan", "--sql", "shop", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["statements"] == ["ALTER TABLE a REPLICA IDENTITY FULL"]


def test_several_errors_are_told_one_after_the_other() -> None:
    both = several_errors(
        (SourceRefused("no table", code="HW-323"), SourceRefused("too old", code="HW-334", hint="new"))
    )
    told = invoke(MadeUpProject(raises=both), "plan").stderr
    assert told == "2 things stand in the way [HW-346]\nno table [HW-323]\ntoo old [HW-334]\n  do:  new\n"
    said = json.loads(invoke(MadeUpProject(raises=both), "plan", "--json").stdout)
    assert [error["code"] for error in said["errors"]] == ["HW-323", "HW-334"]


def test_history_can_be_cut() -> None:
    assert len(invoke(MadeUpProject(), "history", "sales").stdout.splitlines()) == 8
    text = invoke(MadeUpProject(), "history", "sales", "--last", "1").stdout
    assert len(text.splitlines()) == 6
    assert re.search(r"3–7 +2026-11-15 10:30:00\+00:00 +5 +2 +4 +3 +0.25 +spark 0.25", text)


def test_history_shows_what_sources_were_asked() -> None:
    text = invoke(MadeUpProject(), "history", "sales", "--last", "1").stdout
    assert re.search(r"asked of sources\nticks +source +probes +keys +rows +bytes +rows rebased\n", text)
    assert re.search(r"3–7 +shop +4 +0 +1,200 +0 +7\n", text)


def test_explain_prints_a_summary_and_in_full_the_tree_as_it_is() -> None:
    lines = invoke(MadeUpProject(), "explain", "sales").stdout.splitlines()
    assert lines == ["verdict      good", "`headwater explain sales --full` shows every step"]
    assert invoke(MadeUpProject(), "explain", "sales", "--full").stdout == "sales\n└─ join\n"


def test_a_broken_promise_is_2_with_the_smallest_difference() -> None:
    assert "every promise was kept" in invoke(MadeUpProject(), "check").stdout
    result = invoke(MadeUpProject(verdict=WRONG), "check", "sales")
    assert result.exit_code == 2
    assert "tick 7 differs\n  missing 1 × (1, 'pen')" in result.stdout
    data = json.loads(invoke(MadeUpProject(verdict=WRONG), "check", "--json").stdout)
    project = MadeUpProject()
    for arguments in ((), ("--ticks", "3"), ("--ticks", "all")):
        invoke(project, "check", *arguments)
    assert [one for one in project.asked if isinstance(one, tuple)] == [("check", 8), ("check", 3), ("check", None)]
    assert "HW-128" in invoke(project, "check", "--ticks", "none").stderr
    assert data["views"][0]["verdict"]["difference"]["missing"] == [{"row": [1, "pen"], "count": 1}]


def test_teardown_asks(tmp_path: Path) -> None:
    create_project(tmp_path / "shop")
    where = str(tmp_path / "shop")
    project = MadeUpProject()
    unasked = invoke(project, "teardown", "-p", where)
    assert (unasked.exit_code, project.asked) == (1, [])
    assert "HW-130" in unasked.stderr
    result = invoke(project, "teardown", "--yes", "-p", where)
    assert result.exit_code == 0
    assert "dropped slot headwater_shop at shop" in result.stdout
    assert ("teardown",) in project.asked
    [name] = [one.name for one in load(tmp_path / "shop").sources][:1]
    assert invoke(project, "teardown", "--yes", "-p", where, "--source", name).exit_code == 0
    assert ("teardown", name) in project.asked
    assert invoke(project, "teardown", "--yes", "-p", where, "--source", "moon").exit_code == 1
    half = MadeUpProject(failed=(Dropped(source="staff", what="connection refused"),))
    assert invoke(half, "teardown", "--yes", "-p", where).exit_code == 1


def test_init_refuses_a_name_with_a_line_break_before_it_writes(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["init", str(tmp_path / "a\nb")])
    assert (result.exit_code, list(tmp_path.iterdir())) == (1, [])
    assert "HW-162" in result.stderr
    (tmp_path / "taken").write_text("")
    result = CliRunner().invoke(app, ["init", str(tmp_path / "taken" / "shop")])
    assert result.exit_code == 1
    assert "HW-436" in result.stderr
    assert str(tmp_path / "taken") in result.stderr


def test_init_writes_a_project_that_loads(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    result = CliRunner().invoke(app, ["init", str(folder)])
    assert result.exit_code == 0, result.output
    project = load(folder)
    assert (project.name, [view.name for view in project.views]) == ("shop", ["example"])
    assert (folder / ".gitignore").read_text().splitlines()[-1] == "warehouse/"
    again = CliRunner().invoke(app, ["init", str(folder), "--json"])
    assert again.exit_code == 1
    assert json.loads(again.stdout)["error"]["code"] == "HW-119"


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--version"], 0, "headwater 0."),
        (["statsu"], 1, "statsu"),
        (["run", "--ticks", "0"], 1, "--ticks"),
        (["teardown", "--project", "nowhere"], 1, "no project file"),
        (["statsu", "--json"], 1, '"code": "HW-100"'),
    ],
)
def test_the_program(tmp_path: Path, arguments: list[str], code: int, says: str) -> None:
    program = [sys.executable, "-c", "from headwater.cli import main; main()", *arguments]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert says in done.stdout + done.stderr


def test_history_tells_where_the_time_of_batches_went() -> None:
    lines = invoke(MadeUpProject(), "history", "sales", "--timing").stdout.splitlines()
    assert "law" in lines[1] + lines[2]
    assert any("250.0" in line and "–" in line for line in lines)
    told = json.loads(invoke(MadeUpProject(), "history", "sales", "--timing", "--json").stdout)
    assert [batch["milliseconds"]["law"] for batch in told["batches"]] == [250.0, 250.0]
    assert told["batches"][0]["milliseconds"]["commit"] is None
