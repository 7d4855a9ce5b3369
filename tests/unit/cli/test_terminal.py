"""What a person at a terminal sees, played on a pseudo-terminal; and how events become lines."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from headwater.cli.app import app
from headwater.cli.render.progress import progress
from headwater.judge.grade import Verdict
from headwater.judge.result import CheckResult, DemoResult, Sample, ViewCheck
from headwater.model.guarantee import Guarantee
from headwater.model.position import Position, Tick
from headwater.model.relation import RelationName
from headwater.observe.events import BatchCommitted, BootstrapProgress, Idle, Listener, TransactionsAccepted

PROGRAM = """
from headwater.cli.render.page import Grid, Line, print_page
from headwater.cli.render.progress import progress
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.observe.events import BatchCommitted, BootstrapProgress

print_page([Line(text="fine [bold]", style="green"), Grid(headings=("view", "rows"), rows=(("sales", "7"),))])
with progress(as_json=False, debug=False) as listener:
    relation = RelationName(source="shop", name="sales")
    listener(BootstrapProgress(relation=relation, rows_read=5, rows_estimated=10, rows_per_second=2.0, finished=False))
    listener(BatchCommitted(lo=Tick(3), hi=Tick(7), row_count=12, seconds={}))
"""


def on_a_terminal(program: str) -> str:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen([sys.executable, "-c", program], stdout=theirs, stderr=theirs, env=environment) as started:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 65_536)
            except OSError:
                break
            if not part:
                break
            shown += part
        assert started.wait(timeout=60) == 0, shown.decode()
    os.close(ours)
    return shown.decode()


def test_a_terminal_gets_colour_and_bars() -> None:
    shown = on_a_terminal(PROGRAM)
    assert "\x1b[32mfine [bold]" in shown
    assert "sales" in shown
    assert "reading shop.sales" in shown
    assert "5/10" in shown


def lines_of(monkeypatch: pytest.MonkeyPatch, *, as_json: bool) -> list[str]:
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    sales = RelationName(source="shop", name="sales")
    at = Position(source="shop", history="71:1", offset=31)
    with progress(as_json=as_json, debug=False) as listener:
        listener(BootstrapProgress(relation=sales, rows_read=5, rows_estimated=10, rows_per_second=2.0, finished=False))
        listener(BootstrapProgress(relation=sales, rows_read=9, rows_estimated=10, rows_per_second=2.0, finished=True))
        listener(TransactionsAccepted(source="shop", first=Tick(4), last=Tick(7), row_count=9, position=at))
        listener(BatchCommitted(lo=Tick(3), hi=Tick(7), row_count=12, seconds={"spark": 0.2}))
        listener(Idle(tick=Tick(7)))
    return written.getvalue().splitlines()


def test_a_pipe_gets_a_line_for_what_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lines_of(monkeypatch, as_json=False) == [
        "read shop.sales: 9 rows, 2 rows/s",
        "committed ticks 4 to 7: 12 rows in 0.20 s (spark 0.20)",
    ]
    assert lines_of(monkeypatch, as_json=True) == []


@pytest.mark.parametrize(("found", "code"), [(Guarantee.COMPLETE, 0), (Guarantee.STRONG, 2)])
def test_the_demo_succeeds_only_if_every_state_was_exact(
    monkeypatch: pytest.MonkeyPatch, found: Guarantee, code: int
) -> None:
    verdict = Verdict(guarantee=found, states_checked=2_000)
    check = CheckResult(views=(ViewCheck(view="sales", promised=Guarantee.COMPLETE, tick=Tick(9), verdict=verdict),))
    sample = Sample(view="sales", tick=Tick(5), columns=("id", "name"), rows=((1, "pen"), (2, None)))

    def played(seconds: int, listener: Listener, watch: object) -> DemoResult:
        assert watch is None
        del listener
        return DemoResult(
            transaction_count=1_999,
            source_count=3,
            commit_count=40,
            answer_count=90,
            corrected_answer_count=31,
            check=check,
            samples=(sample,),
            seconds=seconds,
        )

    monkeypatch.setattr("headwater.demo.play.play", played)
    result = CliRunner().invoke(app, ["demo", "--seconds", "3"])
    assert result.exit_code == code
    assert "sales at tick 5\nid  name\n 1  pen\n 2  NULL\n" in result.stdout
    assert "1,999 transactions of 3 servers became as many ticks, in 40 commits\n31 answers of 90 came" in result.stdout
    assert ("2,000 states recomputed" in result.stdout and "every one was exact" in result.stdout) == (code == 0)
