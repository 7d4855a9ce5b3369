"""Three databases whose own triggers write down what happens, a project over them, and a judge that believes only them.

crm   customers (key id, a TOASTed note, city may be NULL) · visits (no key, duplicates)
shop  sales (customer may be NULL) · products (divisor 0 only while nobody buys the product)
geo   places · routes
"""

from __future__ import annotations

import itertools
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession
from volume import forms

from headwater.api.session import Headwater, open_project
from headwater.deltas.compare import Row, bag_of, difference
from headwater.errors import HeadwaterError
from headwater.judge.audit import READ_HISTORY, AuditedChange, audit_sql, audited_changes
from headwater.judge.grade import Verdict
from headwater.judge.grade_changes import History, grade_changes
from headwater.judge.replay import ReplayedView, TransactionKey, replay
from headwater.model.guarantee import Guarantee
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK, Relation, RelationName
from headwater.project.file import load
from headwater.project.resolve import connect_sources
from headwater.sources.embedded import EmbeddedServer
from headwater.views.text.declaration import relations_named
from headwater.views.text.upstream_views import ViewText
from headwater.warehouse.query import Warehouse

SOURCES = ("crm", "shop", "geo")

TABLES = {
    "crm": """
        CREATE TABLE customers (id int PRIMARY KEY, city int, score int NOT NULL, note text);
        ALTER TABLE customers ALTER note SET STORAGE EXTERNAL; ALTER TABLE customers SET (toast_tuple_target = 128);
        CREATE INDEX ON customers (city);
        CREATE TABLE visits (customer int, place int, at date);
        CREATE INDEX ON visits (customer); CREATE INDEX ON visits (place)
    """,
    "shop": """
        CREATE TABLE products (id int PRIMARY KEY, kind int, price numeric(10, 2) NOT NULL, divisor int NOT NULL);
        CREATE TABLE sales (no int PRIMARY KEY, customer int, product int, amount int NOT NULL);
        CREATE INDEX ON sales (customer); CREATE INDEX ON sales (product); CREATE INDEX ON products (kind)
    """,
    "geo": """
        CREATE TABLE places (id int PRIMARY KEY, city int, label text);
        CREATE TABLE routes (origin int, target int, km double precision);
        CREATE INDEX ON places (city); CREATE INDEX ON routes (origin); CREATE INDEX ON routes (target)
    """,
}
ROWS = {
    "crm": """
        INSERT INTO customers SELECT g, nullif(g % 8, 0), g % 5, note(g) FROM generate_series(1, 40) g;
        INSERT INTO visits SELECT 1 + g % 40, 1 + g % 12, DATE '2024-01-01' + g % 3 FROM generate_series(1, 60) g
    """,
    "shop": """
        INSERT INTO products SELECT g, nullif(g % 6, 0), g * 1.25, 1 + g % 4 FROM generate_series(1, 25) g;
        INSERT INTO sales SELECT g, nullif(1 + g % 40, 7), 1 + g % 25, g % 9 FROM generate_series(1, 70) g
    """,
    "geo": """
        INSERT INTO places SELECT g, nullif(g % 8, 0), 'place ' || g FROM generate_series(1, 12) g;
        INSERT INTO routes SELECT 1 + g % 12, 1 + g * 5 % 12, g / 3.0 FROM generate_series(1, 24) g
    """,
}
NAMES = {"crm": ("customers", "visits"), "shop": ("products", "sales"), "geo": ("places", "routes")}
NOTE = """
    CREATE FUNCTION note(n int) RETURNS text LANGUAGE sql AS
    $$ SELECT string_agg(md5((n * 1000 + i)::text), '') FROM generate_series(1, 8) i $$
"""
PROBED = ("crm.customers", "crm.visits", "shop.sales")

VIEWS = {
    "probing": """
        SELECT s.no, c.id, c.score + s.amount AS total, c.note, c.city
        FROM shop.sales s JOIN crm.customers c ON s.customer = c.id WHERE s.amount > 1
    """,
    "replicated": "SELECT p.id, p.price, g.label FROM shop.products p JOIN geo.places g ON p.kind <=> g.city",
    "mixed": """
        SELECT s.no, c.city, p.kind, g.label, s.amount * p.price AS paid
        FROM shop.sales s JOIN shop.products p ON s.product = p.id
        JOIN crm.customers c ON c.id = s.customer JOIN geo.places g ON g.city = c.city
    """,
    "twins": """
        SELECT a.id, b.id AS other, a.city FROM crm.customers a JOIN crm.customers b ON a.city = b.city AND a.id < b.id
    """,
    "thefts": """
        SELECT v.customer, v.at, r.km FROM crm.visits v JOIN geo.routes r ON r.origin > v.place AND r.km < v.customer
        WHERE v.customer IS NOT NULL AND v.customer < 12
    """,
    "circle": """
        SELECT s.no, c.id, g.id AS place, v.at FROM shop.sales s, crm.customers c, geo.places g, crm.visits v
        WHERE s.customer = c.id AND c.city = g.city AND v.place = g.id AND v.customer = s.customer
    """,
    "lately": """
        SELECT s.no, p.id, s.amount, p.price FROM shop.sales s JOIN shop.products p ON s.product = p.id
        WHERE p.price < 20 OR s.amount > 5
    """,
    "shares": """
        SELECT s.no, s.amount / p.divisor AS share, v.at FROM shop.sales s JOIN shop.products p ON p.id = s.product
        JOIN crm.visits v ON v.customer = s.customer WHERE s.amount / p.divisor > 0
    """,
}
STRONG = ("lately", "lately_by_kind")

_numbers = itertools.count(1)


@dataclass(kw_only=True)
class AuditedWorld:
    """Three databases with histories, and a project over them; `names` are their tables."""

    servers: Mapping[str, EmbeddedServer]
    database: str
    folder: Path
    names: Mapping[str, Collection[str]] = field(default_factory=lambda: NAMES)
    before: set[TransactionKey] = field(default_factory=set)

    def execute(self, source: str, sql: str) -> list[tuple[object, ...]]:
        return self.servers[source].execute(sql, database=self.database)

    def url(self, source: str) -> str:
        return self.servers[source].url(self.database)

    @property
    def environment(self) -> dict[str, str]:
        return {f"HW_TEST_{source.upper()}": self.url(source) for source in self.names}

    def write_project(
        self, views: Mapping[str, str], *, probed: Collection[str] = PROBED, settings: str = "", name: str = "views"
    ) -> Path:
        """Write the project file and the views' files; views that are not named are removed."""
        parts = [f'[project]\nname = "{self.database}"\n', forms(settings)]
        parts += [f'[sources.{source}]\nurl = "${{HW_TEST_{source.upper()}}}"\n' for source in self.names]
        parts += [f'[relations."{relation}"]\nreading = "probe"\n' for relation in probed]
        parts += [f'[views.{view}]\nguarantee = "strong"\n' for view in STRONG if view in views]
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.sql"):
            old.unlink()
        (self.folder / "headwater.toml").write_text("\n".join(parts))
        for view, sql in views.items():
            (folder / f"{view}.sql").write_text(sql)
        return self.folder

    def open(self, listener: object = None) -> Headwater:
        os.environ.update(self.environment)
        return open_project(self.folder) if listener is None else open_project(self.folder, listener=listener)

    def audited(self, source: str) -> list[AuditedChange]:
        return audited_changes(source, self.execute(source, READ_HISTORY))

    def committed(self, source: str) -> set[TransactionKey]:
        """Return the transactions that have committed by now."""
        found = self.execute(source, "SELECT DISTINCT identity FROM audit.history")
        return {(source, identity) for (identity,) in found if isinstance(identity, int)}

    def note_before(self, *sources: str) -> None:
        """Say that whatever has committed by now may have no tick: the log did not begin before."""
        for source in sources or self.names:
            self.before |= self.committed(source)


@contextmanager
def audited_world(servers: Mapping[str, EmbeddedServer], folder: Path) -> Iterator[AuditedWorld]:
    """Make fresh databases on the servers, with rows in them, and take everything down again."""
    world = AuditedWorld(servers=servers, database=f"world_{os.getpid()}_{next(_numbers)}", folder=folder)
    for source in SOURCES:
        servers[source].execute(f"CREATE DATABASE {world.database}")
        world.execute(source, f"{NOTE}; {TABLES[source]}; {audit_sql(NAMES[source])}")
        world.execute(source, ROWS[source])
    os.environ.update(world.environment)
    try:
        yield world
    finally:
        for server in servers.values():
            server.start()
        if (folder / "headwater.toml").exists():
            for source in connect_sources(load(folder)).values():
                for slot in source.slots().present:
                    source.teardown(slot, {})


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What was judged: a verdict per view, how many ticks there are, and the right histories."""

    verdicts: Mapping[str, Verdict]
    tick_count: int
    expected: Mapping[str, History]

    @property
    def wrong(self) -> dict[str, str]:
        return {name: str(verdict) for name, verdict in self.verdicts.items() if verdict.guarantee < Guarantee.COMPLETE}


def as_it_is(name: str, sql: str) -> str:
    del name
    return sql


def judge(world: AuditedWorld, spark: SparkSession, told: Callable[[str, str], str] = as_it_is) -> Judgement:
    """Replay what the triggers saw in the order of ticks, and hold every state of every view against it.

    `told` gives the text that DuckDB must be told to compute what Spark computes of a view, by its name and its text.

    Every transaction that touched a relation of some view must have exactly one tick, except those of `world.before`,
    which may have none.
    A strong view is held against it at the ticks that some commit made its frontier.
    """
    warehouse = Warehouse.open(str(load(world.folder).warehouse))
    entries = warehouse.catalog().views
    accepted = warehouse.log.transactions(None, Tick(0), warehouse.log.last_tick)
    given = dict.fromkeys(tick for tick, _ in accepted)  # the parts of a global transaction share one
    assert list(given) == list(range(1, len(given) + 1)), "ticks have no gaps"
    joins = load(world.folder).global_transactions is not None
    assert joins or len(given) == len(accepted), "every transaction has a tick of its own"
    ticks = [(tick, one.source, one.identity) for tick, one in accepted]
    followed = {
        name
        for view in entries.values()
        for name in relations_named(
            view.sql, name=view.name, lower=[ViewText(name=n, sql=sql) for n, sql in view.lower]
        )
    }
    history = [change for source in world.names for change in world.audited(source) if change.relation in followed]
    expected = replay(
        relations=relations(world),
        views=[
            ReplayedView(name=view.name, sql=told(view.name, view.sql), birth=view.birth, lower=view.lower)
            for view in entries.values()
        ],
        history=history,
        before=unticked(world, history, ticks),
        ticks=ticks,
    )
    verdicts = {}
    for name, entry in entries.items():
        observed, frontier = observe(warehouse, spark, name), warehouse.frontier(name)
        right = expected[name]
        if entry.guarantee == Guarantee.STRONG.value:
            shown = sorted(
                {
                    commit.record.frontiers[name]
                    for commit in warehouse.commits.read()
                    if name in commit.record.frontiers
                }
            )
            observed, right = _at_ticks(observed, shown), _at_ticks(right, shown)
        verdicts[name] = grade_changes(right, observed, through=frontier)
    return Judgement(verdicts=verdicts, tick_count=len(ticks), expected=expected)


def relations(world: AuditedWorld) -> list[Relation]:
    described: list[Relation] = []
    for source, connected in connect_sources(load(world.folder)).items():
        names = [RelationName(source=source, name=name) for name in world.names[source]]
        described += connected.inspect(names).relations
    return described


def unticked(
    world: AuditedWorld, history: list[AuditedChange], ticks: list[tuple[Tick, str, int]]
) -> list[TransactionKey]:
    """Return the transactions that have no tick and need none, in the order of their last entries.

    Two that touched one row committed in that order: the second could not touch it before the first had ended.
    """
    ticked = {(source, identity) for _, source, identity in ticks}
    last = {(change.source, change.identity): number for number, change in enumerate(history)}
    return sorted((key for key in world.before & last.keys() if key not in ticked), key=lambda key: last[key])


def observe(warehouse: Warehouse, spark: SparkSession, name: str) -> History:
    """Return what the warehouse shows of a view: its first state, and the changes of every later tick."""
    birth, frontier = warehouse.view(name).birth, warehouse.frontier(name)
    start = rows_of(warehouse.view_dataframe(spark, name, birth).toArrow())
    changes: dict[Tick, Counter[Row]] = defaultdict(Counter)
    table = warehouse.changes_dataframe(spark, name, birth, frontier).toArrow()
    ticks, counts = table[TICK].to_pylist(), table[COUNT].to_pylist()
    plain = table.drop_columns([TICK, COUNT])
    for tick, count, *row in zip(ticks, counts, *(column.to_pylist() for column in plain.columns), strict=True):
        changes[Tick(tick)][tuple(row)] += count
    return History(birth=birth, start=bag_of(start), changes=changes)


def rows_of(table: object) -> list[Row]:
    columns = [column.to_pylist() for column in table.columns]  # type: ignore[attr-defined]
    return list(zip(*columns, strict=True))


def state_at(history: History, tick: Tick) -> Counter[Row]:
    state = Counter(history.start)
    for at, change in history.changes.items():
        if at <= tick:
            for row, count in change.items():
                state[row] += count
    return Counter({row: count for row, count in state.items() if count})


def _at_ticks(history: History, ticks: list[Tick]) -> History:
    """Return the history as somebody saw it who looked at these ticks only."""
    moved: dict[Tick, Counter[Row]] = defaultdict(Counter)
    for at, change in history.changes.items():
        seen_at = next((tick for tick in ticks if tick >= at), None)
        if seen_at is not None:
            for row, count in change.items():
                moved[seen_at][row] += count
    return History(birth=history.birth, start=history.start, changes=moved)


def assert_reads_agree(world: AuditedWorld, judgement: Judgement, spark: SparkSession, samples: int = 1) -> None:
    """Read every view at a few ticks as a user would, and compare with the right states; the frontier among them."""
    project = world.open()
    warehouse = Warehouse.open(str(project.project.warehouse))
    del spark
    for name, right in judgement.expected.items():
        frontier = warehouse.frontier(name)
        strong = warehouse.view(name).guarantee == Guarantee.STRONG.value
        span = frontier - right.birth
        ticks = {frontier} if strong else {Tick(right.birth + span * n // samples) for n in range(samples + 1)}
        for tick in sorted(ticks):
            shown = bag_of(rows_of(project.view(name).at(tick).arrow()))
            differs = difference(state_at(right, tick), shown)
            assert not differs, f"{name} at {tick}: {differs.text(5)}"


def assert_exact(world: AuditedWorld, spark: SparkSession, told: Callable[[str, str], str] = as_it_is) -> Judgement:
    """Assert that every state of every view is the right one."""
    try:
        judgement = judge(world, spark, told)
    except HeadwaterError as error:
        raise AssertionError(str(error)) from None
    assert not judgement.wrong, "\n".join(f"{name}: {text}" for name, text in judgement.wrong.items())
    return judgement
