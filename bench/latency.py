"""`python -m bench.latency`: how long small batches take, as ratios to an earlier commit, in one interleaved run.

The tree of the earlier commit is checked out into a folder of its own. A process of each tree takes its turn, so that
whatever else the machine does befalls both. Sources are scripted, in memory. Only the ratios count.

    warm batch     1 transaction: a join of three relations, and an aggregate over it; replicas
    many views     20 views and 100 transactions, against 1 view
    freshness      100 transactions/s, from the source's commit to the readable commit
    cold start     from the start of the process until eight views are born, and until their first batch is committed

This file is also what runs in both trees (`--worker`), so it uses only what both have.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import Any

BASELINE = "8b1d399"
_HERE = Path(__file__).resolve()
_SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
_CUSTOMERS, _ORDERS, _LINES = 1_500, 6_000, 3
_JOIN = """
SELECT c.c_custkey, c.c_mktsegment, o.o_orderkey, o.o_orderdate, l.l_linenumber,
       l.l_extendedprice * (1 - l.l_discount) AS revenue
FROM shop.customer c
JOIN shop.orders o ON c.c_custkey = o.o_custkey
JOIN shop.lineitem l ON l.l_orderkey = o.o_orderkey
WHERE c.c_mktsegment <> 'HOUSEHOLD' AND o.o_orderdate >= DATE '1995-01-01'
"""
_AGGREGATE = """
SELECT c.c_mktsegment, year(o.o_orderdate) AS year, sum(l.l_extendedprice * (1 - l.l_discount)) AS revenue,
       count(*) AS lines, avg(l.l_discount) AS discount
FROM shop.customer c
JOIN shop.orders o ON c.c_custkey = o.o_custkey
JOIN shop.lineitem l ON l.l_orderkey = o.o_orderkey
WHERE c.c_mktsegment <> 'HOUSEHOLD' AND o.o_orderdate >= DATE '1995-01-01'
GROUP BY c.c_mktsegment, year(o.o_orderdate)
"""


def _texts(count: int) -> dict[str, str]:
    """Return joins and aggregates, each with a condition of its own, so that no two have a step in common."""
    texts = {}
    for number in range(count):
        text = (_JOIN, _AGGREGATE)[number % 2]
        texts[f"v{number}"] = text.replace("DATE '1995-01-01'", f"DATE '199{2 + number % 6}-0{1 + number // 6}-01'")
    return texts


_VIEWS = {"join": {"w1": _JOIN}, "aggregate": {"w2": _AGGREGATE}, "one": _texts(1), "many": _texts(20)}


# ---- what runs in both trees -----------------------------------------------------------------------------------------


class _Shop:
    """A scripted source with customers, orders and lineitems, and what changes them."""

    def __init__(self) -> None:
        from headwater.model.relation import Column, Relation, RelationName  # noqa: PLC0415 - of the tree that runs
        from headwater.sources.scripted import ScriptedSource  # noqa: PLC0415 - as above

        def relation(name: str, key: tuple[str, ...], **types: str) -> Relation:
            columns = tuple(Column(name=column, type=kind, native=kind) for column, kind in types.items())
            return Relation(name=RelationName(source="shop", name=name), columns=columns, key=key)

        money = "decimal(15,2)"
        self.customer = relation("customer", ("c_custkey",), c_custkey="int", c_mktsegment="string")
        self.orders = relation("orders", ("o_orderkey",), o_orderkey="int", o_custkey="int", o_orderdate="date")
        self.lineitem = relation(
            "lineitem",
            ("l_orderkey", "l_linenumber"),
            l_orderkey="int",
            l_linenumber="int",
            l_extendedprice=money,
            l_discount=money,
        )
        self._random = random.Random(7)
        self._customers = {key: (key, self._random.choice(_SEGMENTS)) for key in range(1, _CUSTOMERS + 1)}
        self._orders = {key: self._order(key) for key in range(1, _ORDERS + 1)}
        self._lines = {key: self._some_lines(key) for key in self._orders}
        self.source = ScriptedSource("shop", (self.customer, self.orders, self.lineitem))
        self.source.commit(
            {
                self.customer.name: dict.fromkeys(self._customers.values(), 1),
                self.orders.name: dict.fromkeys(self._orders.values(), 1),
                self.lineitem.name: {line: 1 for lines in self._lines.values() for line in lines},
            }
        )

    def _order(self, key: int) -> tuple[object, ...]:
        day = date(1992, 1, 1) + timedelta(days=self._random.randint(0, 2_400))
        return (key, self._random.randint(1, _CUSTOMERS), day)

    def _some_lines(self, key: int) -> list[tuple[object, ...]]:
        def cents(most: int) -> Decimal:
            return Decimal(self._random.randint(0, most)) / 100

        return [(key, number, cents(1_000_000), cents(10)) for number in range(_LINES)]

    def commit(self) -> Any:
        """Commit a transaction: two new orders, or two that go, or five customers that change their segment."""
        changes: dict[Any, dict[tuple[object, ...], int]] = {one.name: {} for one in self.source.database.relations}
        kind = self._random.random()
        if kind < 0.8:
            sign = 1 if kind < 0.45 else -1
            for _ in range(2):
                key = max(self._orders) + 1 if sign > 0 else self._random.choice(list(self._orders))
                if sign > 0:
                    self._orders[key], self._lines[key] = self._order(key), self._some_lines(key)
                changes[self.orders.name][self._orders[key]] = sign
                changes[self.lineitem.name].update(dict.fromkeys(self._lines[key], sign))
                if sign < 0:
                    del self._orders[key], self._lines[key]
        else:
            for key in self._random.sample(list(self._customers), 5):
                old, new = self._customers[key], (key, self._random.choice(_SEGMENTS))
                if old != new:
                    changes[self.customer.name] |= {old: -1, new: 1}
                    self._customers[key] = new
        return self.source.commit({name: rows for name, rows in changes.items() if rows})


class _Ear:
    """Remembers when batches were committed, and where their time went."""

    def __init__(self) -> None:
        self.commits: list[tuple[float, Any]] = []
        self.has_seen: dict[str, float] = {}

    def __call__(self, event: Any) -> None:
        self.has_seen.setdefault(type(event).__name__, time.time())
        if type(event).__name__ == "BatchCommitted":
            self.commits.append((time.time(), event))


@contextmanager
def _maintained(spark: Any, texts: Mapping[str, str], shop: _Shop, ear: _Ear) -> Iterator[Any]:
    from headwater.engine.service.start import start_maintainer  # noqa: PLC0415 - of the tree that runs
    from headwater.model.keeping import AllGroupTables, Continuous  # noqa: PLC0415 - as above
    from headwater.model.project import (  # noqa: PLC0415 - as above
        DEFAULT_ALGORITHM,
        Project,
        Reading,
        RetainTicks,
        SourceDeclaration,
        ViewFile,
    )
    from headwater.project.resolve import resolve_project  # noqa: PLC0415 - as above

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        said = SourceDeclaration(
            name="shop", url_text="", statement_timeout_seconds=60.0, probe_connections=4, declared_in="bench"
        )
        views = tuple(
            ViewFile(
                name=view,
                sql=sql,
                file=folder / f"{view}.sql",
                guarantee=None,
                algorithm=DEFAULT_ALGORITHM,
                maintenance=None,
                refresh=Continuous(),
                group_tables=AllGroupTables(),
            )
            for view, sql in texts.items()
        )
        project = Project(
            name="latency",
            file=folder / "headwater.toml",
            warehouse=str(folder / "warehouse"),
            retention=RetainTicks(count=1_000_000),
            batch_ticks=1_000,
            batch_interval_seconds=0.0,
            default_reading=Reading.REPLICA,
            readings={},
            sources=(said,),
            views=views,
        )
        resolved = resolve_project(project, spark, connect=lambda _, __: shop.source)
        maintainer = start_maintainer(spark, resolved, ear)
        try:
            yield maintainer
        finally:
            maintainer.close()
            maintainer.release()


class _Place:
    """A maintainer that is stepped by hand."""

    def __init__(self, stack: ExitStack, spark: Any, texts: Mapping[str, str]) -> None:
        self.shop, self.ear = _Shop(), _Ear()
        self.maintainer = stack.enter_context(_maintained(spark, texts, self.shop, self.ear))
        self.maintainer.begin()
        while self.maintainer.is_bringing_in():
            if not self.maintainer.step():
                self.maintainer.acceptor.wait_for_news(0.05)
        assert not self.maintainer.unborn(), str(self.maintainer.unborn())

    def batch(self, transactions: int) -> dict[str, float]:
        """Commit transactions, let the log have them, and return how long the batch takes, and its parts."""
        position = [self.shop.commit() for _ in range(transactions)][-1]
        assert self.maintainer.acceptor.wait_for({position.log_name: position}, 60), "the log was not followed"
        self.ear.commits.clear()
        target, started = self.maintainer.log.last_tick, time.perf_counter()
        while any(view.frontier < target for view in self.maintainer.views.values()):
            self.maintainer.step()
            assert not any(view.stopped for view in self.maintainer.views.values()), "a view stopped"
        seconds = time.perf_counter() - started
        parts: dict[str, float] = {"batch": seconds}
        for _, commit in self.ear.commits:
            for part, spent in commit.seconds.items():
                parts[part] = parts.get(part, 0.0) + spent
        return parts


def _freshness(spark: Any, warm: int, seconds: float, rate: int, views: int) -> list[float]:
    """Return the seconds from each commit at the source to the readable commit."""
    shop, ear = _Shop(), _Ear()
    count = warm + int(seconds * rate)
    at: list[float] = []
    with _maintained(spark, _texts(views), shop, ear) as maintainer:

        def write() -> None:
            while len(maintainer.views) < views:
                time.sleep(0.05)
            started = time.perf_counter()
            for number in range(count):
                time.sleep(max(0.0, started + number / rate - time.perf_counter()))
                shop.commit()
                at.append(time.time())

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        first = maintainer.log.last_tick
        before = len(shop.source.database.transactions)
        maintainer.run(until_idle=False, ticks=None if first else before + count)
        writer.join()
        last = maintainer.log.last_tick
        told = maintainer.log.transactions(None, first, last)
    tick_of = {transaction.identity: tick for tick, transaction in told}
    waits = []
    for number, when in enumerate(at):
        tick = tick_of[before + number + 1]
        waits.append(next(one for one, commit in ear.commits if commit.hi >= tick) - when)
    return waits[warm:]


def _cold(began: float) -> dict[str, float]:
    """Return how long it takes from the start of the process to the birth of eight views, and to their first batch."""
    import headwater  # noqa: PLC0415 - of the tree that runs

    shop, ear = _Shop(), _Ear()

    def write() -> None:
        while "ViewBorn" not in ear.has_seen:
            time.sleep(0.01)
        shop.commit()

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "views").mkdir()
        for view, sql in _texts(8).items():
            (folder / "views" / f"{view}.sql").write_text(sql)
        url = shop.source.database.publish()
        text = f'[project]\nname = "cold"\n[sources.shop]\nurl = "{url}"\n[defaults]\nreading = "replica"\n'
        (folder / "headwater.toml").write_text(text)
        threading.Thread(target=write, daemon=True).start()
        with headwater.open(folder, listener=ear) as project:
            project.run(ticks=2)
    born, spark_there = ear.has_seen["ViewBorn"], ear.has_seen["SparkStarted"]
    return {"spark": spark_there - began, "born": born - began, "first batch": ear.commits[0][0] - began}


def _work(kinds: list[str]) -> None:
    """Answer questions that come line by line, until there are no more."""
    from headwater.spark.session import spark_session  # noqa: PLC0415 - of the tree that runs

    with ExitStack() as stack:
        spark = spark_session()
        places = {kind: _Place(stack, spark, _VIEWS[kind]) for kind in kinds}
        print(json.dumps("ready"), flush=True)
        for line in sys.stdin:
            asked = json.loads(line)
            if asked["do"] == "batch":
                answer: Any = places[asked["kind"]].batch(asked["transactions"])
            else:
                answer = _freshness(spark, **asked["with"])
            print(json.dumps(answer), flush=True)


# ---- what compares ---------------------------------------------------------------------------------------------------


class _Tree:
    """A process that runs one tree's code."""

    def __init__(self, name: str, source: Path, arguments: list[str]) -> None:
        self.name = name
        self._process = subprocess.Popen(
            [sys.executable, str(_HERE), "--worker", *arguments],
            env={**os.environ, "PYTHONPATH": str(source)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def answer(self) -> Any:
        assert self._process.stdout is not None, "it is a pipe"
        for line in self._process.stdout:
            if line.startswith(("{", "[", '"')):
                return json.loads(line)
        raise SystemExit(f"{self.name}: the worker ended with {self._process.wait()}")

    def ask(self, **asked: Any) -> Any:
        assert self._process.stdin is not None, "it is a pipe"
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return self.answer()

    def end(self) -> None:
        assert self._process.stdin is not None, "it is a pipe"
        self._process.stdin.close()
        self._process.wait(60)


def _checked_out(commit: str, folder: Path) -> Path:
    root = _HERE.parent.parent
    subprocess.run(["git", "clone", "--quiet", "--shared", "--no-checkout", str(root), str(folder)], check=True)
    subprocess.run(["git", "-C", str(folder), "checkout", "--quiet", commit], check=True)
    return folder / "src"


def _turns(trees: dict[str, _Tree], repeats: int, **asked: Any) -> dict[str, list[Any]]:
    """Ask both trees in turn, and in turn first."""
    found: dict[str, list[Any]] = {name: [] for name in trees}
    order = itertools.cycle([list(trees), list(trees)[::-1]])
    for names in itertools.islice(order, repeats):
        for name in names:
            found[name].append(trees[name].ask(**asked))
    return found


def _say(what: str, unit: str, found: Mapping[str, list[float]]) -> None:
    before, now = (sorted(found[name]) for name in ("before", "now"))
    print(
        f"| {what} | {median(before):.3f} ({before[0]:.3f}–{before[-1]:.3f}) "
        f"| {median(now):.3f} ({now[0]:.3f}–{now[-1]:.3f}) {unit} | {median(now) / median(before):.2f} |",
        flush=True,
    )


def _compare(options: argparse.Namespace, sources: Mapping[str, Path]) -> None:
    print("| what | before | now | ratio |")
    print("|---|---|---|---|")
    wanted = set(options.what)
    kinds = [kind for kind in _VIEWS if kind in wanted or ("many" in wanted and kind == "one")]
    if kinds or "freshness" in wanted:
        trees = {name: _Tree(name, source, kinds) for name, source in sources.items()}
        for tree in trees.values():
            tree.answer()
        for kind in (kind for kind in ("join", "aggregate") if kind in wanted):
            _compare_batches(options, trees, kind)
        if "many" in wanted:
            _compare_many(options, trees)
        if "freshness" in wanted:
            _compare_freshness(options, trees)
        for tree in trees.values():
            tree.end()
    if "cold" in wanted:
        _compare_cold(options, sources)


def _compare_batches(options: argparse.Namespace, trees: dict[str, _Tree], kind: str) -> None:
    _turns(trees, options.warm, do="batch", kind=kind, transactions=1)
    found = _turns(trees, options.repeats, do="batch", kind=kind, transactions=1)
    for part in dict.fromkeys(part for one in found["now"] for part in one):
        of_part = {name: [1000 * one.get(part, 0.0) for one in runs] for name, runs in found.items()}
        if all(median(values) > 0 for values in of_part.values()):
            _say(f"{kind}, 1 transaction: {part}", "ms", of_part)


def _compare_many(options: argparse.Namespace, trees: dict[str, _Tree]) -> None:
    seconds: dict[str, dict[str, list[float]]] = {}
    for kind in ("one", "many"):
        _turns(trees, max(3, options.warm // 4), do="batch", kind=kind, transactions=100)
        runs = _turns(trees, options.repeats, do="batch", kind=kind, transactions=100)
        seconds[kind] = {name: [one["batch"] for one in of_tree] for name, of_tree in runs.items()}
        _say(f"{kind}, 100 transactions", "s", seconds[kind])
    times = {name: median(seconds["many"][name]) / median(seconds["one"][name]) for name in trees}
    print(f"| 20 views against 1 | {times['before']:.2f} × | {times['now']:.2f} × | |", flush=True)


def _compare_freshness(options: argparse.Namespace, trees: dict[str, _Tree]) -> None:
    asked = {"warm": 1_000, "seconds": options.seconds, "rate": 100, "views": 1}
    fresh = _turns(trees, options.rounds, do="freshness", **{"with": asked})
    for name, share in (("median", 0.5), ("95 %", 0.95)):
        at = {tree: [sorted(waits)[int(share * len(waits))] for waits in of_tree] for tree, of_tree in fresh.items()}
        _say(f"freshness, {name}", "s", at)


def _compare_cold(options: argparse.Namespace, sources: Mapping[str, Path]) -> None:
    cold: dict[str, list[dict[str, float]]] = {name: [] for name in sources}
    for names in itertools.islice(itertools.cycle([list(sources), list(sources)[::-1]]), options.rounds):
        for name in names:
            tree = _Tree(name, sources[name], ["--cold", str(time.time())])
            cold[name].append(tree.answer())
            tree.end()
    for part in ("spark", "born", "first batch"):
        _say(f"cold start: {part}", "s", {name: [one[part] for one in runs] for name, runs in cold.items()})


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.latency", description=__doc__)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--cold", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--before", default=BASELINE, help="the commit to compare with")
    parser.add_argument("--warm", type=int, default=60, help="batches that are not counted")
    parser.add_argument("--repeats", type=int, default=31, help="batches that are")
    parser.add_argument("--rounds", type=int, default=3, help="runs of freshness and of cold starts")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long freshness is measured")
    parser.add_argument("what", nargs="*", default=["join", "aggregate", "many", "freshness", "cold"])
    options = parser.parse_args()
    if options.cold is not None:
        print(json.dumps(_cold(options.cold)), flush=True)
        sys.stdin.read()
    elif options.worker:
        _work(options.what)
    else:
        with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
            before = _checked_out(options.before, Path(folder, "before"))
            _compare(options, {"before": before, "now": _HERE.parent.parent / "src"})


if __name__ == "__main__":
    main()
