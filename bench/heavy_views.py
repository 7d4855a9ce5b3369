"""Views that are heavy to compile, in the shapes of well-known retail queries, and many small ones."""

from __future__ import annotations

from headwater.model.relation import Column, Relation, RelationName

_TABLES = {
    "web_sales": "ws_order_number ws_item_sk ws_bill_customer_sk ws_sold_date_sk ws_sold_time_sk ws_ship_mode_sk "
    "ws_warehouse_sk ws_quantity ws_ext_sales_price$ ws_net_paid$ ws_ext_list_price$ ws_ext_discount_amt$",
    "catalog_sales": "cs_order_number cs_item_sk cs_bill_customer_sk cs_sold_date_sk cs_sold_time_sk cs_ship_mode_sk "
    "cs_warehouse_sk cs_quantity cs_sales_price$ cs_net_paid$ cs_ext_list_price$ cs_ext_discount_amt$ cs_list_price$",
    "store_sales": "ss_ticket_number ss_item_sk ss_customer_sk ss_sold_date_sk ss_store_sk ss_quantity ss_list_price$ "
    "ss_ext_list_price$ ss_ext_discount_amt$ ss_wholesale_cost$ ss_coupon_amt$",
    "store_returns": "sr_ticket_number sr_item_sk",
    "date_dim": "d_date_sk d_year d_moy d_week_seq d_date'",
    "time_dim": "t_time_sk t_time",
    "ship_mode": "sm_ship_mode_sk sm_carrier'",
    "warehouse": "w_warehouse_sk w_warehouse_name' w_warehouse_sq_ft w_city' w_county' w_state' w_country'",
    "item": "i_item_sk i_brand_id i_class_id i_category_id i_product_name' i_current_price$ i_color'",
    "customer": "c_customer_sk c_customer_id' c_first_name' c_last_name' c_birth_country' c_current_addr_sk",
    "customer_address": "ca_address_sk ca_street_number' ca_street_name' ca_city' ca_zip'",
    "store": "s_store_sk s_store_name' s_zip'",
}
_MARKS = {"$": "decimal(7,2)", "'": "string"}


def _column(word: str) -> Column:
    kind = _MARKS.get(word[-1], "int")
    return Column(name=word.rstrip("$'"), type=kind, native=kind)


RELATIONS = tuple(
    Relation(
        name=RelationName(source="shop", name=table),
        columns=(columns := tuple(map(_column, text.split()))),
        key=(columns[0].name,),
    )
    for table, text in _TABLES.items()
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_PLACE = "w_warehouse_name, w_warehouse_sq_ft, w_city, w_county, w_state, w_country"


def _by_month(prefix: str, price: str, paid: str) -> str:
    sums = [
        f"sum(CASE WHEN d_moy = {number} THEN {value} * {prefix}_quantity ELSE 0 END) AS {month}_{kind}"
        for kind, value in (("sales", price), ("net", paid))
        for number, month in enumerate(_MONTHS, 1)
    ]
    return f"""SELECT {_PLACE}, concat('DHL', ',', 'BARIAN') AS ship_carriers, d_year AS year, {", ".join(sums)}
      FROM shop.{"web" if prefix == "ws" else "catalog"}_sales, shop.warehouse, shop.date_dim, shop.time_dim,
        shop.ship_mode
      WHERE {prefix}_warehouse_sk = w_warehouse_sk AND {prefix}_sold_date_sk = d_date_sk
        AND {prefix}_sold_time_sk = t_time_sk AND {prefix}_ship_mode_sk = sm_ship_mode_sk
        AND d_year = 2001 AND t_time BETWEEN 30838 AND 30838 + 28800 AND sm_carrier IN ('DHL', 'BARIAN')
      GROUP BY {_PLACE}, d_year"""


def _warehouse_months() -> str:
    """Return two unions of wide sums by month, summed again: 36 sums over 48."""
    sums = [f"sum({month}_{kind}) AS {month}_{kind}" for kind in ("sales", "net") for month in _MONTHS]
    per_foot = [f"sum({month}_sales / w_warehouse_sq_ft) AS {month}_sales_per_sq_foot" for month in _MONTHS]
    web = _by_month("ws", "ws_ext_sales_price", "ws_net_paid")
    catalog = _by_month("cs", "cs_sales_price", "cs_net_paid")
    return f"""SELECT {_PLACE}, ship_carriers, year, {", ".join(sums + per_foot)}
    FROM ({web} UNION ALL {catalog}) AS x
    GROUP BY {_PLACE}, ship_carriers, year ORDER BY w_warehouse_name LIMIT 100"""


_KINDS = {"s": ("store_sales", "ss", "ss_customer_sk"), "c": ("catalog_sales", "cs", "cs_bill_customer_sk"),
          "w": ("web_sales", "ws", "ws_bill_customer_sk")}  # fmt: skip


def _year_totals(kinds: str) -> str:
    """Return totals per customer and year in several channels, joined with themselves."""
    parts = [
        f"""SELECT c_customer_id AS customer_id, c_first_name, c_last_name, c_birth_country, d_year AS dyear,
              sum(({prefix}_ext_list_price - {prefix}_ext_discount_amt) / 2) AS year_total, '{kind}' AS sale_type
            FROM shop.customer, shop.{table}, shop.date_dim
            WHERE c_customer_sk = {customer} AND {prefix}_sold_date_sk = d_date_sk
            GROUP BY c_customer_id, c_first_name, c_last_name, c_birth_country, d_year"""
        for kind in kinds
        for table, prefix, customer in (_KINDS[kind],)
    ]
    named = [f"t_{kind}_{place}" for kind in kinds for place in ("first", "second")]
    conditions = [f"{named[0]}.customer_id = {other}.customer_id" for other in named[1:]]
    conditions += [f"t_{kind}_{place}.sale_type = '{kind}'" for kind in kinds for place in ("first", "second")]
    conditions += [f"t_{kind}_first.dyear = 2001 AND t_{kind}_second.dyear = 2002" for kind in kinds]
    conditions += [f"t_{kind}_first.year_total > 0" for kind in kinds]
    grown = [
        f"CASE WHEN t_{kind}_first.year_total > 0 THEN t_{kind}_second.year_total / t_{kind}_first.year_total END"
        for kind in kinds
    ]
    conditions += [f"{grown[0]} < {other}" for other in grown[1:]]
    return f"""WITH year_total AS ({" UNION ALL ".join(parts)})
    SELECT t_s_second.customer_id, t_s_second.c_first_name, t_s_second.c_last_name, t_s_second.c_birth_country
    FROM {", ".join(f"year_total AS {name}" for name in named)}
    WHERE {" AND ".join(conditions)} ORDER BY 1, 2, 3, 4 LIMIT 100"""


def _cross_items() -> str:
    """Return the sales of items that every channel sold, above the average sale, rolled up."""
    kinds = [("store", "store_sales", "ss", "ss_list_price"), ("catalog", "catalog_sales", "cs", "cs_list_price"),
             ("web", "web_sales", "ws", "ws_ext_list_price")]  # fmt: skip
    sold = " INTERSECT ".join(
        f"""SELECT i_brand_id, i_class_id, i_category_id FROM shop.{table}, shop.item, shop.date_dim
            WHERE {p}_item_sk = i_item_sk AND {p}_sold_date_sk = d_date_sk AND d_year BETWEEN 1999 AND 2001"""
        for _, table, p, _ in kinds
    )
    every = " UNION ALL ".join(
        f"""SELECT {p}_quantity AS quantity, {price} AS list_price FROM shop.{table}, shop.date_dim
            WHERE {p}_sold_date_sk = d_date_sk AND d_year BETWEEN 1999 AND 2001"""
        for _, table, p, price in kinds
    )
    channels = " UNION ALL ".join(
        f"""SELECT '{channel}' AS channel, i_brand_id, i_class_id, i_category_id,
              sum({p}_quantity * {price}) AS sales, count(*) AS number_sales
            FROM shop.{table}, shop.item, shop.date_dim
            WHERE {p}_item_sk IN (SELECT ss_item_sk FROM cross_items) AND {p}_item_sk = i_item_sk
              AND {p}_sold_date_sk = d_date_sk AND d_year = 2001 AND d_moy = 11
            GROUP BY i_brand_id, i_class_id, i_category_id
            HAVING sum({p}_quantity * {price}) > (SELECT average_sales FROM avg_sales)"""
        for channel, table, p, price in kinds
    )
    return f"""WITH cross_items AS (
      SELECT i_item_sk AS ss_item_sk FROM shop.item,
        ({sold}) AS sold WHERE item.i_brand_id = sold.i_brand_id AND item.i_class_id = sold.i_class_id
        AND item.i_category_id = sold.i_category_id),
    avg_sales AS (SELECT avg(quantity * list_price) AS average_sales FROM ({every}) AS x)
    SELECT channel, i_brand_id, i_class_id, i_category_id, sum(sales) AS sales, sum(number_sales) AS number_sales
    FROM ({channels}) AS y GROUP BY ROLLUP (channel, i_brand_id, i_class_id, i_category_id)"""


def _product_pairs() -> str:
    """Return sales of one product in two years, each a wide join, grouped, joined with itself."""
    return """WITH cs_ui AS (
      SELECT cs_item_sk, sum(cs_ext_list_price) AS sale, sum(cs_net_paid + cs_ext_discount_amt) AS refund
      FROM shop.catalog_sales GROUP BY cs_item_sk HAVING sum(cs_ext_list_price) > 2 * sum(cs_net_paid)),
    cross_sales AS (
      SELECT i_product_name AS product_name, i_item_sk AS item_sk, s_store_name AS store_name, s_zip AS store_zip,
        ad1.ca_street_number AS b_street_number, ad1.ca_street_name AS b_street_name, ad1.ca_city AS b_city,
        ad1.ca_zip AS b_zip, ad2.ca_street_number AS c_street_number, ad2.ca_street_name AS c_street_name,
        ad2.ca_city AS c_city, ad2.ca_zip AS c_zip, d1.d_year AS syear, d2.d_year AS fsyear, d3.d_year AS s2year,
        count(*) AS cnt, sum(ss_wholesale_cost) AS s1, sum(ss_list_price) AS s2, sum(ss_coupon_amt) AS s3
      FROM shop.store_sales, shop.store_returns, cs_ui, shop.date_dim AS d1, shop.date_dim AS d2,
        shop.date_dim AS d3, shop.store, shop.customer, shop.customer_address AS ad1,
        shop.customer_address AS ad2, shop.item
      WHERE ss_store_sk = s_store_sk AND ss_sold_date_sk = d1.d_date_sk AND ss_customer_sk = c_customer_sk
        AND c_current_addr_sk = ad2.ca_address_sk AND ss_quantity = ad1.ca_address_sk AND ss_item_sk = i_item_sk
        AND ss_item_sk = sr_item_sk AND ss_ticket_number = sr_ticket_number AND ss_item_sk = cs_ui.cs_item_sk
        AND c_customer_sk = d2.d_date_sk AND i_brand_id = d3.d_date_sk
        AND i_color IN ('purple', 'burlywood', 'indian') AND i_current_price BETWEEN 64 AND 64 + 10
      GROUP BY i_product_name, i_item_sk, s_store_name, s_zip, ad1.ca_street_number, ad1.ca_street_name, ad1.ca_city,
        ad1.ca_zip, ad2.ca_street_number, ad2.ca_street_name, ad2.ca_city, ad2.ca_zip, d1.d_year, d2.d_year, d3.d_year)
    SELECT cs1.product_name, cs1.store_name, cs1.store_zip, cs1.b_street_number, cs1.b_street_name, cs1.b_city,
      cs1.b_zip, cs1.c_street_number, cs1.c_street_name, cs1.c_city, cs1.c_zip, cs1.syear, cs1.cnt, cs1.s1, cs1.s2,
      cs1.s3, cs2.s1 AS t1, cs2.s2 AS t2, cs2.s3 AS t3, cs2.syear AS syear2, cs2.cnt AS cnt2
    FROM cross_sales AS cs1, cross_sales AS cs2
    WHERE cs1.item_sk = cs2.item_sk AND cs1.syear = 1999 AND cs2.syear = 1999 + 1 AND cs2.cnt <= cs1.cnt
      AND cs1.store_name = cs2.store_name AND cs1.store_zip = cs2.store_zip"""


def _ranked() -> str:
    return """SELECT sum(ss_ext_list_price) AS total, i_brand_id, i_class_id,
      grouping(i_brand_id) + grouping(i_class_id) AS lochierarchy,
      rank() OVER (PARTITION BY grouping(i_brand_id) + grouping(i_class_id),
        CASE WHEN grouping(i_class_id) = 0 THEN i_brand_id END ORDER BY sum(ss_ext_list_price) DESC) AS place
    FROM shop.store_sales, shop.item, shop.date_dim
    WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND d_year = 2001
    GROUP BY ROLLUP (i_brand_id, i_class_id)"""


HEAVY = {
    "warehouse_months": _warehouse_months(),
    "year_totals_two": _year_totals("sw"),
    "year_totals_three": _year_totals("scw"),
    "cross_items": _cross_items(),
    "product_pairs": _product_pairs(),
    "ranked_rollup": _ranked(),
}

_SMALL = (
    """SELECT ss_ticket_number, ss_quantity + {n} AS q FROM shop.store_sales WHERE ss_quantity > {n}""",
    """SELECT i_brand_id, count(*) AS n, sum(ss_quantity + {n}) AS q FROM shop.store_sales, shop.item
    WHERE ss_item_sk = i_item_sk GROUP BY i_brand_id""",
    """SELECT i_item_sk FROM shop.item
    WHERE EXISTS (SELECT 1 FROM shop.store_sales WHERE ss_item_sk = i_item_sk AND ss_quantity > {n})""",
    """SELECT i.i_item_sk, s.ss_ticket_number FROM shop.item AS i
    LEFT JOIN shop.store_sales AS s ON i.i_item_sk = s.ss_item_sk AND s.ss_quantity > {n}""",
    """SELECT DISTINCT ss_item_sk % {n} AS k FROM shop.store_sales""",
    """SELECT ss_item_sk, max(ss_quantity + {n}) AS m FROM shop.store_sales GROUP BY ss_item_sk""",
    """SELECT ss_item_sk, ss_ticket_number,
      row_number() OVER (PARTITION BY ss_item_sk ORDER BY ss_quantity + {n}) AS place FROM shop.store_sales""",
    """SELECT ss_item_sk AS k, ss_quantity AS v FROM shop.store_sales WHERE ss_quantity < {n}
    UNION ALL SELECT i_item_sk, i_brand_id FROM shop.item""",
    """SELECT i_item_sk, (SELECT max(ss_quantity) FROM shop.store_sales WHERE ss_item_sk = i_item_sk + {n}) AS top
    FROM shop.item""",
    """SELECT d_year, sum(ss_list_price) AS paid, avg(ss_quantity * {n}) AS mean FROM shop.store_sales
    JOIN shop.date_dim ON ss_sold_date_sk = d_date_sk GROUP BY d_year HAVING count(*) > 1""",
    """SELECT i_brand_id, i_class_id, sum(i_category_id + {n}) AS s FROM shop.item
    GROUP BY ROLLUP (i_brand_id, i_class_id)""",
)


def small_views(count: int) -> dict[str, str]:
    """Return so many small views of many kinds, each its own text."""
    return {f"small_{n}": _SMALL[n % len(_SMALL)].format(n=n + 1) for n in range(count)}
