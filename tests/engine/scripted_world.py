"""A project over two scripted databases, its maintainers, and what its views should show: computed here, in Python.

shop.sales (id, product, store) ──┐
                                  ├── sold:   id, store, price
stock.products (id, price) ───────┘── totals: store, how many, the sum of prices
                                   └─ each:   id, how many, the sum of prices: as many groups as sales

A lake has both in one database, with a log for each.
"""

from __future__ import annotations

import copy
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from volume import forms

from headwater.deltas.on_arrow import ArrowBag
from headwater.engine.service.maintainer import Maintainer
from headwater.engine.service.start import start_maintainer
from headwater.model.position import Tick, log_name
from headwater.model.relation import COUNT, TICK, Column, Relation, RelationName
from headwater.observe.events import Event
from headwater.project.file import load
from headwater.project.plan import Consent
from headwater.project.plan_result import RunResult
from headwater.project.resolve import resolve_project
from headwater.sources.scripted import ScriptedDatabase
from headwater.sources.scripted.database import SERVER
from headwater.warehouse.query import Warehouse

SALES = RelationName(source="shop", name="sales")
PRODUCTS = RelationName(source="stock", name="products")
SOLD = "SELECT s.id, s.store, p.price FROM shop.sales s JOIN stock.products p ON p.id = s.product"
TOTALS = (
    "SELECT s.store, COUNT(*) AS n, SUM(p.price) AS paid FROM shop.sales s JOIN stock.products p ON p.id = s.product "
    "GROUP BY s.store"
)
EACH = (
    "SELECT s.id, COUNT(*) AS n, SUM(p.price) AS paid FROM shop.sales s JOIN stock.products p ON p.id = s.product "
    "GROUP BY s.id"
)

QUICK = '[settings.capture]\nreconnect_first = "10 ms"\n'
"""Sources are tried again soon."""

ONCE = "[views.sold]\ncompare_at_birth = false\n"

Row = tuple[Any, ...]
Bag = Counter[Row]


def relation(name: RelationName, *columns: str) -> Relation:
    return Relation(
        name=name,
        columns=tuple(Column(name=column, type="bigint", native="int8") for column in columns),
        key=columns[:1],
        not_null=frozenset(columns[:1]),
    )


class Died(SystemExit):
    """A maintainer was stopped at a fail point; its threads end without a word."""


@dataclass(eq=False)
class FailPoints:
    """Stops a maintainer at a fail point: from then on it reaches none, so that nothing durable is done any more."""

    name: str = ""
    skipped: int = 0
    is_dead: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reach(self, name: str) -> None:
        with self._lock:
            if not self.is_dead and name == self.name:
                self.skipped -= 1
                self.is_dead = self.skipped < 0
            if self.is_dead:
                raise Died(name)

    @contextmanager
    def armed(self, name: str, skipped: int = 0) -> Iterator[None]:
        """Let the maintainer of this block die at a fail point, after it has passed it so many times."""
        self.name, self.skipped, self.is_dead = name, skipped, False
        try:
            yield
        finally:
            self.name, self.is_dead = "", False

    # `headwater.fail_points` looks up the name of the point to die at, and compares: here it is asked instead

    def get(self, _: str) -> FailPoints:
        return self

    def __eq__(self, name: object) -> bool:
        self.reach(str(name))
        return False

    __hash__ = None  # type: ignore[assignment]


@dataclass
class ScriptedWorld:
    """The databases, the project's folder, and the events of its maintainers."""

    spark: SparkSession
    folder: Path
    shop: ScriptedDatabase = field(
        default_factory=lambda: ScriptedDatabase((relation(SALES, "id", "product", "store"),), tells_from_start=False)
    )
    stock: ScriptedDatabase = field(
        default_factory=lambda: ScriptedDatabase((relation(PRODUCTS, "id", "price"),), tells_from_start=False)
    )
    sales: RelationName = SALES
    products: RelationName = PRODUCTS
    events: list[Event] = field(default_factory=list)
    oracles: dict[str, Callable[[Bag, Bag], Bag]] = field(default_factory=dict)
    """By view, what gives its rows from those of sales and products, for views that are not the two above."""
    address: str = ""
    """Where the warehouse is, if not in the project's folder."""
    options: Mapping[str, str] = field(default_factory=dict)
    """How the object store there is reached."""
    _urls: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._urls = {self.sales.source: self.shop.publish(), self.products.source: self.stock.publish()}

    @classmethod
    def lake(cls, spark: SparkSession, folder: Path) -> ScriptedWorld:
        """Return a world of one database whose relations have a log each, and can be read as of the past."""
        sales, products = (replace(name, source="lake") for name in (SALES, PRODUCTS))
        database = ScriptedDatabase(
            (relation(sales, "id", "product", "store"), relation(products, "id", "price")),
            tells_from_start=False,
            abilities=replace(SERVER, reads_as_of=True, holds_log=False),
            has_log_per_relation=True,
        )
        return cls(spark, folder, shop=database, stock=database, sales=sales, products=products)

    def write_project(self, views: Mapping[str, str], settings: str = "") -> None:
        """Write the project's files; views that are not named are gone."""
        shutil.rmtree(self.folder / "views", ignore_errors=True)
        (self.folder / "views").mkdir(parents=True)
        sources = "".join(f'[sources.{name}]\nurl = "{url}"\n' for name, url in self._urls.items())
        stored = ""
        if self.address:
            said = "".join(f'{key} = "{value}"\n' for key, value in self.options.items())
            stored = f'[warehouse]\npath = "{self.address}"\n[warehouse.storage]\n{said}'
        text = f'[project]\nname = "scripted"\n{stored}{sources}{QUICK}{forms(settings)}'
        (self.folder / "headwater.toml").write_text(text)
        for name, sql in views.items():
            of_sources = sql.replace(str(SALES), str(self.sales)).replace(str(PRODUCTS), str(self.products))
            (self.folder / "views" / f"{name}.sql").write_text(of_sources)

    def copied_to(self, folder: Path) -> ScriptedWorld:
        """Return a copy of everything, which goes its own way."""
        copied = ScriptedWorld(self.spark, folder, shop=_copy(self.shop), stock=_copy(self.stock))
        shutil.copytree(self.folder, folder)
        text = (folder / "headwater.toml").read_text()
        for name, url in self._urls.items():
            text = text.replace(url, copied._urls[name])
        (folder / "headwater.toml").write_text(text)
        return copied

    def start(self, consent: Consent | None = None) -> Maintainer:
        """Take the warehouse over, as a new process does; nothing runs yet."""
        resolved = resolve_project(load(self.folder), self.spark)
        return start_maintainer(self.spark, resolved, self.events.append, consent=consent or Consent())

    def run(self, consent: Consent | None = None) -> RunResult:
        """Maintain until everything is committed that the sources have."""
        maintainer = self.start(consent)
        try:
            return maintainer.run(until_idle=True, ticks=None)
        finally:
            maintainer.release()

    @contextmanager
    def running(self) -> Iterator[Maintainer]:
        """Maintain in a thread; whatever it raises is raised at the end."""
        maintainer = self.start()
        raised: list[BaseException] = []

        def run() -> None:
            try:
                maintainer.run(until_idle=False, ticks=None)
            except BaseException as error:  # noqa: BLE001 - raised below
                raised.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            wait_until(
                lambda: (
                    raised
                    or [one.is_connected for one in maintainer.acceptor.threads().values()] == [True] * len(self._urls)
                )
            )
            yield maintainer
        finally:
            maintainer.stop()
            thread.join(60)
            maintainer.release()
        for error in raised:
            raise error

    def sell(self, *numbers: int) -> None:
        """Commit one sale in a transaction of its own for each number; some of them are taken back and changed."""
        for number in numbers:
            changes: dict[Row, int] = {(number, number % 4, number % 3): 1}
            if number % 5 == 0 and (number - 1, (number - 1) % 4, (number - 1) % 3) in self.rows("shop"):
                changes[number - 1, (number - 1) % 4, (number - 1) % 3] = -1
            self.shop.commit({self.sales: changes})

    def price(self, product: int, price: int, *, is_hidden: bool = False) -> int:
        """Commit a new price of a product, which may be its first one, and return the transaction's number."""
        before = {row: -1 for row in self.rows("stock") if row[0] == product}
        return self.stock.commit({self.products: {**before, (product, price): 1}}, is_hidden=is_hidden)

    def rows(self, source: str, upto: int | None = None) -> Bag:
        """Return the rows of a source's table after some of its transactions."""
        database, name = (self.shop, self.sales) if source == "shop" else (self.stock, self.products)
        found: Bag = Counter()
        for one in database.log(database.log_of(name))[:upto]:
            if name in one.truncated:
                found.clear()
            found.update(one.changes.get(name, {}))
        return Counter({row: count for row, count in found.items() if count})

    @property
    def warehouse(self) -> Warehouse:
        return Warehouse.open(self.address or str(self.folder / "warehouse"))

    def assert_exact(self, *views: str) -> int:
        """Compare every state of views with what their queries give; return the newest tick. All ticks are there once.

        What a source committed before it was followed is in every state; what it committed since has ticks.
        """
        warehouse = self.warehouse
        told = warehouse.log.transactions(None, warehouse.log.horizon(), warehouse.log.last_tick)
        assert [tick for tick, _ in told] == list(range(1, len(told) + 1)), "every tick once"
        for _, log, end in self._logs():
            numbers = [one.identity for _, one in told if one.position.log_name == log]
            assert numbers == list(range(end - len(numbers) + 1, end + 1))
        for view in views:
            entry = warehouse.view(view)
            assert warehouse.frontier(view) == warehouse.log.last_tick, f"{view} is not at the end"
            shown = bag_of(warehouse.few_rows(view, entry.birth, [name for name, _ in entry.schema]))
            changes = warehouse.few_changes(view, entry.birth, warehouse.log.last_tick)
            assert changes is not None
            by_tick: dict[int, Bag] = {}
            for row in changes.to_pylist():
                tick, count = row.pop(TICK), row.pop(COUNT)
                by_tick.setdefault(tick, Counter())[tuple(row.values())] += count
            for tick in range(entry.birth, warehouse.log.last_tick + 1):
                shown.update(by_tick.get(tick, {}) if tick > entry.birth else {})
                expected = self._expected(view, Tick(tick), told)
                assert {row: n for row, n in shown.items() if n} == expected, f"{view} at tick {tick}"
        return warehouse.log.last_tick

    def assert_newest(self, *views: str) -> None:
        """Compare the newest state of views with what their queries give."""
        warehouse = self.warehouse
        last = warehouse.log.last_tick
        told = warehouse.log.transactions(None, warehouse.log.horizon(), last)
        for view in views:
            entry = warehouse.view(view)
            assert warehouse.frontier(view) == last, f"{view} is not at the end"
            shown = bag_of(warehouse.few_rows(view, last, [name for name, _ in entry.schema]))
            assert {row: n for row, n in shown.items() if n} == self._expected(view, last, told), view

    def _logs(self) -> Iterator[tuple[str, str, int]]:
        """Yield what `rows` calls each table, with the name and the length of its log."""
        for source, name, database in (("shop", self.sales, self.shop), ("stock", self.products, self.stock)):
            log = database.log_of(name)
            yield source, log_name(name.source, log), len(database.log(log))

    def _expected(self, view: str, tick: Tick, told: list[tuple[Tick, Any]]) -> Bag:
        upto = {}
        for source, log, end in self._logs():
            upto[source] = end - sum(one.position.log_name == log and at > tick for at, one in told)
        usual = totals_of if view.startswith("totals") else each_of if view.startswith("each") else sold_of
        oracle = self.oracles.get(view, usual)
        return oracle(self.rows("shop", upto["shop"]), self.rows("stock", upto["stock"]))


def sold_of(sales: Bag, products: Bag) -> Bag:
    prices: dict[int, int] = dict(products.keys())
    return Counter(
        {
            (number, store, prices[product]): count
            for (number, product, store), count in sales.items()
            if product in prices
        }
    )


def each_of(sales: Bag, products: Bag) -> Bag:
    return Counter({(number, n, n * price): 1 for (number, _, price), n in sold_of(sales, products).items()})


def totals_of(sales: Bag, products: Bag) -> Bag:
    by_store: dict[int, list[int]] = {}
    for (_, store, price), count in sold_of(sales, products).items():
        by_store.setdefault(store, []).extend([price] * count)
    return Counter((store, len(paid), sum(paid)) for store, paid in by_store.items())


def wait_until(what: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)


def bag_of(rows: ArrowBag | None) -> Bag:
    assert rows is not None
    found: Bag = Counter()
    for row in rows.counted.to_pylist():
        count = row.pop(COUNT)
        found[tuple(row.values())] += count
    return found


def _copy(database: ScriptedDatabase) -> ScriptedDatabase:
    return ScriptedDatabase(
        database.relations,
        tells_from_start=database.tells_from_start,
        transactions=list(database.transactions),
        slots=copy.deepcopy(database.slots),
        history=database.history,
        abilities=database.abilities,
        has_log_per_relation=database.has_log_per_relation,
    )
