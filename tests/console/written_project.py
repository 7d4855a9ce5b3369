"""A project whose warehouse was written by hand, row by row: pages read it without Spark and without a source.

shop.sales (id, product, city) ──┐
                                 ├── sold:   id, city, price
stock.products (id, price) ──────┘── totals: city, n, paid      over `sold`
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from headwater.deltas.on_arrow import ArrowBag
from headwater.model.position import Position, Tick
from headwater.model.relation import RelationName
from headwater.model.transaction import Capture, Transaction
from headwater.warehouse.catalog import Catalog, ViewEntry
from headwater.warehouse.commit_record import BatchStatistics, CommitKind, CommitRecord, Stopped, ViewDelta
from headwater.warehouse.folders import view_folder
from headwater.warehouse.kept_table import KeptTable
from headwater.warehouse.query import Warehouse

SALES, PRODUCTS = RelationName(source="shop", name="sales"), RelationName(source="stock", name="products")
SOLD = """\
-- What was sold where.
SELECT s.id, s.city, p.price
FROM shop.sales AS s JOIN stock.products AS p ON p.id = s.product"""
TOTALS = "SELECT city, COUNT(*) AS n, SUM(price) AS paid FROM sold GROUP BY city"
CITIES = ("Oslo", "Lund", "Turku", "O'Hara's Landing, a town with a rather long name")
BEGAN = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
TICKS = 40

Row = tuple[Any, ...]
Bag = Counter[Row]

_MONEY = pa.decimal128(10, 2)
_COLUMNS = {
    SALES: pa.schema([("id", pa.int64()), ("product", pa.int64()), ("city", pa.string())]),
    PRODUCTS: pa.schema([("id", pa.int64()), ("price", _MONEY)]),
    "sold": pa.schema([("id", pa.int64()), ("city", pa.string()), ("price", _MONEY)]),
    "totals": pa.schema([("city", pa.string()), ("n", pa.int64()), ("paid", pa.decimal128(20, 2))]),
}


def state_at(tick: int) -> dict[str, Bag]:
    """Return the rows of both views at a tick, computed here."""
    sales, products = Counter[Row](), Counter[Row]()
    for number in range(tick + 1):
        for name, changes in changes_of(number).items():
            (sales if name == SALES else products).update(changes)
    prices = {row[0]: row[1] for row, count in products.items() if count > 0}
    sold: Bag = Counter()
    for (number, product, city), count in sales.items():
        if product in prices:
            sold[number, city, prices[product]] += count
    sold = +sold
    totals: Bag = Counter()
    for city in {city for _, city, _ in sold}:
        paid = [(price, count) for (_, own, price), count in sold.items() if own == city]
        totals[city, sum(count for _, count in paid), sum(price * count for price, count in paid)] += 1
    return {"sold": sold, "totals": totals}


def changes_of(tick: int) -> dict[RelationName, Bag]:
    """Return what a tick changed at its source. Tick 0 is what was there before."""
    if tick == 0:
        return {
            PRODUCTS: Counter({(number, Decimal(10 * number) + Decimal("0.50")): 1 for number in range(1, 5)}),
            SALES: Counter({(number, number % 4 + 1, CITIES[number % 4]): 1 for number in range(100, 160)}),
        }
    if tick % 9 == 5:
        product, times = tick % 4 + 1, tick // 9
        before = Decimal(10 * product) + Decimal("0.50")
        for earlier in range(1, tick):
            if earlier % 9 == 5 and earlier % 4 + 1 == product:
                before = Decimal(10 * product) + earlier // 9 + Decimal("1.00")
        return {
            PRODUCTS: Counter({(product, before): -1, (product, Decimal(10 * product) + times + Decimal("1.00")): 1})
        }
    return {SALES: Counter({(200 + tick, tick % 4 + 1, CITIES[tick % 4]): 1})}


def write_project(folder: Path, *, stopped: bool = False, more_views: int = 0) -> Path:
    """Write the project and its warehouse, with views more than the two if that is asked for."""
    (folder / "views").mkdir(parents=True)
    sources = "".join(f'[sources.{name}]\nurl = "scripted://gone"\n' for name in ("shop", "stock"))
    (folder / "headwater.toml").write_text(f'[project]\nname = "corner_shops"\n{sources}')
    texts = {"sold": SOLD, "totals": TOTALS}
    for number in range(more_views):
        below = f"more_{number - 40:03}_by_city_and_quarter" if number >= 40 else "sold"
        texts[f"more_{number:03}_by_city_and_quarter"] = f"SELECT id, city, price FROM {below} WHERE id % 7 = {number}"
    for name, sql in texts.items():
        (folder / "views" / f"{name}.sql").write_text(sql)
    _write_warehouse(str(folder / "warehouse"), texts, is_stopped=stopped)
    return folder


def _write_warehouse(path: str, texts: dict[str, str], *, is_stopped: bool) -> None:
    warehouse = Warehouse.create(path)
    epoch = warehouse.commits.take_lease("somewhere:1")
    warehouse.log.take_over(epoch)
    warehouse.log.append([_capture(tick) for tick in range(1, TICKS + 1)])
    born = state_at(0)
    entries, tables = {}, {}
    for number, (name, sql) in enumerate(texts.items()):
        schema = _COLUMNS.get(name, _COLUMNS["sold"])
        table = KeptTable.create(view_folder(path, name, 1), warehouse.commits.journal, schema, Tick(0))
        table.checkpoint.write(_table(schema, born.get(name, Counter() if number > 99 else born["sold"])), Tick(0))
        columns = tuple((field.name, str(field.type)) for field in schema)
        entries[name] = ViewEntry(name=name, generation=1, sql=sql, birth=Tick(0), guarantee="complete", schema=columns)
        tables[name] = table
    first = CommitRecord(frontiers=dict.fromkeys(entries, Tick(0)))
    warehouse.commits.commit(CommitKind.CATALOG, Tick(0), first, epoch=epoch, catalog=Catalog(views=entries))
    for low in range(0, TICKS, 4):
        high = Tick(low + 4)
        changes, deltas = [], {}
        for name in ("sold", "totals"):
            signed = [
                (row, tick, count) for tick in range(low + 1, high + 1) for row, count in _delta(name, tick).items()
            ]
            rows = _table(_COLUMNS[name], Counter(), signed)
            if (change := tables[name].change(ArrowBag(rows), high)) is not None:
                changes.append(change)
            came = sum(count for _, _, count in signed if count > 0)
            deltas[name] = ViewDelta(
                rows_added=came,
                rows_removed=came - sum(count for _, _, count in signed),
                changed_rows=4,
                read_rows=8,
                seconds=0.05,
            )
        end = "sold" if is_stopped and low >= TICKS // 2 else ""
        frontiers = {name: Tick(TICKS // 2) if name == end else high for name in entries}
        stops = {end: Stopped(code="HW-601", summary="a sum is too large", hint="widen the column")} if end else {}
        record = CommitRecord(
            frontiers=frontiers,
            stopped=stops,
            positions={"shop": _position("shop", high), "stock": _position("stock", high)},
            statistics=BatchStatistics(
                lo=Tick(low), hi=high, seconds={"Spark": 0.21, "commit": 0.04}, rows=deltas, probe_count=2
            ),
        )
        warehouse.commits.commit(CommitKind.BATCH, high, record, epoch=epoch, changes=changes)


def _delta(name: str, tick: int) -> Bag:
    found: Bag = Counter(state_at(tick)[name])
    found.subtract(state_at(tick - 1)[name])
    return Counter({row: count for row, count in found.items() if count})


def _position(source: str, tick: int) -> Position:
    return Position(source=source, history="71:1", offset=0x16B3700 + 64 * tick)


def _capture(tick: int) -> Capture:
    [(name, changes)] = changes_of(tick).items()
    when = BEGAN + timedelta(seconds=30 * tick, minutes=45 if tick > 30 else 0)
    one = Transaction(position=_position(name.source, tick), identity=tick, committed_at=when)
    schema = _COLUMNS[name]
    values = {field.name: [row[at] for row in changes] for at, field in enumerate(schema)}
    rows = pa.table(values, schema=schema).append_column("_ordinal", pa.array([0] * len(changes), pa.int32()))
    return Capture(
        transactions=(one,), rows={name: rows.append_column("_count", pa.array(changes.values(), pa.int64()))}
    )


def _table(schema: pa.Schema, rows: Bag, signed: list[tuple[Row, int, int]] | None = None) -> pa.Table:
    listed = [row for row, _, _ in signed] if signed is not None else [row for row, n in rows.items() for _ in range(n)]
    plain = pa.table({field.name: [row[at] for row in listed] for at, field in enumerate(schema)}, schema=schema)
    if signed is None:
        return plain
    ticks = pa.array([tick for _, tick, _ in signed], pa.int64())
    counts = pa.array([count for _, _, count in signed], pa.int64())
    return plain.append_column("_tick", ticks).append_column("_count", counts)
