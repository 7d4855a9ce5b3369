"""`--log-format json`: one document a line, for every event, and for what is logged beside them."""

from __future__ import annotations

import json
import logging

import pytest
from test_logbook import ONE_OF_EACH

from headwater.cli.render.progress import LogForm, json_line, progress
from headwater.observe.events import Event
from headwater.observe.logbook import level_of, sentence_of


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda event: type(event).__name__)
def test_every_event_is_one_line(event: Event) -> None:
    line = json_line(event)
    assert "\n" not in line
    said = json.loads(line)
    assert (said["event"], said["message"]) == (type(event).__name__, sentence_of(event))
    assert said["level"] == logging.getLevelName(level_of(event)).lower()


def test_standard_error_has_lines_of_json_only(capsys: pytest.CaptureFixture[str]) -> None:
    handlers = logging.getLogger().handlers
    with progress(as_json=True, debug=False, log_form=LogForm.JSON) as listener:
        for event in ONE_OF_EACH:
            listener(event)
        try:
            int("a text\nof two lines")
        except ValueError:
            logging.getLogger("headwater.upkeep").warning("upkeep failed", exc_info=True)
    assert logging.getLogger().handlers is handlers
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    heard = [event for event in ONE_OF_EACH if level_of(event) >= logging.INFO]
    assert [one["event"] for one in lines] == [*(type(event).__name__ for event in heard), "headwater.upkeep"]
    assert "ValueError" in lines[-1]["traceback"]


def test_an_error_is_told_part_by_part() -> None:
    [failed] = [event for event in ONE_OF_EACH if type(event).__name__ == "SourceGone"]
    assert set(json.loads(json_line(failed))["fields"]["error"]) == {"code", "summary", "detail", "hint"}


def test_debug_adds_what_is_of_that_level(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(as_json=False, debug=True, log_form=LogForm.JSON) as listener:
        for event in ONE_OF_EACH:
            listener(event)
    assert len(capsys.readouterr().err.splitlines()) == len(ONE_OF_EACH)
