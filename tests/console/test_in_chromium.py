"""A real browser goes through the pages as a person does; what it shows is what the command line says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from browser import Browser
from pyspark.sql import SparkSession
from scripted_world import SOLD, TOTALS, ScriptedWorld
from served import Served
from typer.testing import CliRunner

import headwater
from headwater.cli.app import app
from headwater.console.serve import serving


def test_a_walk_without_spark(browser: Browser, written: Served) -> None:
    """From the overview to a view, along the slider by keys and by pointer, to a transaction, and back to live."""
    browser.open(written.address)
    browser.wait(lambda: browser.texts("td[data-rows]") == ["96", "4"])
    browser.click('a[href="/view/sold"] .name')
    browser.wait(lambda: browser.address.endswith("/view/sold"))
    assert "live, tick 40" in browser.text(".time .now")
    browser.press("\ue012")  # arrow left
    browser.wait(lambda: "at=39" in browser.address and "as of tick 39" in browser.text(".time .now"))
    browser.press("\ue014")  # arrow right
    browser.wait(lambda: "at=40" in browser.address)
    browser.click(".strip")
    browser.wait(lambda: "at=20" in browser.address)
    browser.wait(lambda: "as of tick 20" in browser.text(".time .now"))
    browser.press("l")
    browser.wait(lambda: "at=" not in browser.address)
    browser.write(".find input", "14\ue007")
    browser.wait(lambda: browser.text("h1") == "Tick 14")
    assert len(browser.texts("tr.came")) == len(browser.texts("tr.went"))


@pytest.fixture(scope="module")
def world(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> ScriptedWorld:
    made = ScriptedWorld(spark, tmp_path_factory.mktemp("console") / "scripted")
    made.write_project(
        {"sold": SOLD, "totals": TOTALS},
        "[views.sold]\ncompare_at_birth = false\n[views.totals]\ncompare_at_birth = false\n",
    )
    for product in range(4):
        made.price(product, 10 * product)
    made.sell(*range(1, 8))
    made.run()
    made.sell(*range(11, 14))
    made.price(1, 11)
    made.run()
    return made


def said_by_the_command_line(world: ScriptedWorld, *arguments: str) -> str:
    done = CliRunner().invoke(app, [*arguments, "--project", str(world.folder)])
    assert done.exit_code == 0, done.output
    return str(done.stdout)


def test_a_row_is_traced_and_a_missing_one_explained(browser: Browser, world: ScriptedWorld) -> None:
    with serving(headwater.open(world.folder)) as address:
        browser.open(f"{address}view/totals?order=store")
        browser.click("#rows tbody tr:nth-child(2) td:nth-child(2)")
        browser.wait(lambda: browser.texts("#pane table[data-relation]"), 60)
        command = browser.run("return document.querySelector('#pane [data-copy]').dataset.copy")
        where, at = re.fullmatch(
            r'headwater trace totals --where "(.*)" --at (\d+)', command.replace("\\`", "`")
        ).groups()
        found = json.loads(said_by_the_command_line(world, "trace", "totals", "--where", where, "--at", at, "--json"))
        for relation in found["relations"]:
            name = relation["relation"]
            lines = browser.run(
                "return [...document.querySelectorAll(`#pane table[data-relation='${arguments[0]}'] tbody tr`)]"
                ".map((one) => [...one.querySelectorAll('td[data-column]')].map((cell) => cell.textContent))",
                name,
            )
            expected = [[str(value) for value in row[:-1]] for row in relation["rows"]["rows"]]
            assert sorted(lines) == sorted(expected), name
        browser.point("#rows tr.chosen td:nth-child(4)")  # SUM(price): the prices behind it
        browser.wait(lambda: browser.texts("#pane td.lit"))
        lit = set(browser.run("return [...document.querySelectorAll('#pane td.lit')].map((one) => one.dataset.column)"))
        assert lit == {"price"}
        assert "row=" in browser.address, "the choice is in the address"

        browser.write("#missing", "store = 77\ue007")
        browser.wait(lambda: browser.texts("#pane .obstacles li"), 60)
        said = said_by_the_command_line(world, "why-not", "totals", "--where", "store = 77")
        for obstacle in browser.texts("#pane .obstacles li"):
            assert " ".join(obstacle.split()) in " ".join(said.split())


def test_a_check_is_started_by_its_button_alone(browser: Browser, world: ScriptedWorld) -> None:
    with serving(headwater.open(world.folder)) as address:
        browser.open(f"{address}certificate")
        browser.click("form[method=post] button")
        browser.wait(lambda: browser.texts("#certificate tbody tr"), 120)
        assert "Every promise was kept" in browser.text("main")
        said = json.loads(said_by_the_command_line(world, "check", "--json"))
        shown = browser.run(
            "return [...document.querySelectorAll('#certificate tbody tr')]"
            ".map((row) => [...row.cells].map((cell) => cell.innerText))"
        )
        assert [row[0] for row in shown] == [view["view"] for view in said["views"]]
        assert [row[2] for row in shown] == [view["verdict"]["guarantee"] for view in said["views"]]
        browser.open(f"{address}plan")
        browser.wait(lambda: "Nothing to do" in browser.text("main"), 60)
        browser.open(f"{address}advice")
        browser.wait(lambda: browser.texts("[data-loaded=yes]"), 60)
        assert not browser.texts(".error")


def test_live(browser: Browser, world: ScriptedWorld, tmp_path: Path) -> None:
    """A commit shows up on a page that is open, without being asked."""
    del tmp_path
    with serving(headwater.open(world.folder)) as address:
        browser.open(f"{address}view/sold")
        before = browser.text(".facts")
        world.sell(21)
        world.run()
        browser.wait(lambda: browser.text(".facts") != before, 30)
        assert "21" in browser.texts("#rows td:nth-child(2)")
