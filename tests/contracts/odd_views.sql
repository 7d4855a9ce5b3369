-- Odd views over shop.orders, shop.items and crm.customers: most are refused, some are recomputed, a few are maintained.
-- What each is told must be true, and speak of this text. One view per line.

-- functions that are not there, or depend on more than their arguments
SELECT o.id, foo(o.note) AS x FROM shop.orders AS o
SELECT o.id, my_schema.clean(o.note) AS x FROM shop.orders AS o
SELECT o.id, current_timestamp() AS x FROM shop.orders AS o
SELECT o.id, current_date AS x FROM shop.orders AS o
SELECT o.id, now() AS x FROM shop.orders AS o
SELECT o.id, rand() AS x FROM shop.orders AS o
SELECT o.id, random(3) AS x FROM shop.orders AS o
SELECT o.id, randn() AS x FROM shop.orders AS o
SELECT o.id, uuid() AS x FROM shop.orders AS o
SELECT o.id, user() AS x FROM shop.orders AS o
SELECT o.id, current_user() AS x FROM shop.orders AS o
SELECT o.id, session_user AS x FROM shop.orders AS o
SELECT o.id, current_database() AS x FROM shop.orders AS o
SELECT o.id, localtimestamp() AS x FROM shop.orders AS o
SELECT o.id, unix_timestamp() AS x FROM shop.orders AS o
SELECT o.id, unix_timestamp(o.at) AS x FROM shop.orders AS o
SELECT o.id, to_unix_timestamp(o.at) AS x FROM shop.orders AS o
SELECT o.id, curdate() AS x FROM shop.orders AS o
SELECT o.id, monotonically_increasing_id() AS x FROM shop.orders AS o
SELECT o.id, spark_partition_id() AS x FROM shop.orders AS o
SELECT o.id, input_file_name() AS x FROM shop.orders AS o
SELECT o.id, shuffle(array(1, 2)) AS x FROM shop.orders AS o
SELECT o.customer, collect_list(o.item) AS x FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, collect_set(o.item) AS x FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, array_agg(o.item) AS x FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, string_agg(o.note, ',') AS x FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, listagg(o.note, ',') AS x FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, listagg(o.note, ',') WITHIN GROUP (ORDER BY o.note) AS x FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, group_concat(o.note) AS x FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, first(o.note) AS x FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, last(o.note) AS x FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, first_value(o.note) AS x FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, any_value(o.note) AS x FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, mode(o.note) AS x FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, max_by(o.note, o.amount) AS x FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, min_by(o.note, o.amount) AS x FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, mean(o.amount) AS x FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, std(o.amount) AS x FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, every(o.amount > 1) AS x FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, any(o.amount > 1) AS x FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, some(o.amount > 1) AS x FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, approx_count_distinct(o.item) AS x FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, approx_percentile(o.amount, 0.5) AS x FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, percentile_approx(o.amount, 0.5) AS x FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, percentile_cont(0.5) WITHIN GROUP (ORDER BY o.amount) AS x FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, histogram_numeric(o.amount, 5) AS x FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, regr_slope(o.amount, o.weight) AS x FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, product(o.amount) AS x FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, bitmap_construct_agg(o.amount) AS x FROM shop.orders AS o GROUP BY o.customer
SELECT o.id, ucase(o.item) AS x FROM shop.orders AS o GROUP BY o.id
SELECT o.id, ucase(o.nothing) AS x FROM shop.orders AS o
SELECT o.id, ucase(o.item, 2) AS x FROM shop.orders AS o
SELECT o.id, lcase() AS x FROM shop.orders AS o
SELECT o.id, nvl(o.note, o.at) + nvl(o.at, array(1)) AS x FROM shop.orders AS o
SELECT o.id, ifnull(o.id, array(1)) AS x FROM shop.orders AS o
SELECT o.id, nvl2(o.note, 1, array(2)) AS x FROM shop.orders AS o
SELECT o.id, substr(o.day, 1, DATE '2024-01-01') AS x FROM shop.orders AS o
SELECT o.id, char_length(array(1)) AS x FROM shop.orders AS o
SELECT o.id, len(array(1)) AS x FROM shop.orders AS o
SELECT o.id, dayofweek(o.amount) AS x FROM shop.orders AS o
SELECT o.id, to_char(o.day, 'yyyy') AS x FROM shop.orders AS o
SELECT o.id, to_varchar(o.amount, '999') AS x FROM shop.orders AS o
SELECT o.id, to_number(o.note, '999') AS x FROM shop.orders AS o
SELECT o.id, get_json_object(o.note, '$.a') AS x FROM shop.orders AS o
SELECT o.id, from_json(o.note, 'a INT') AS x FROM shop.orders AS o
SELECT o.id, to_json(named_struct('a', o.id)) AS x FROM shop.orders AS o
SELECT o.id, parse_json(o.note) AS x FROM shop.orders AS o
SELECT o.id, java_method('java.util.UUID', 'randomUUID') AS x FROM shop.orders AS o
SELECT o.id, reflect('java.util.UUID', 'randomUUID') AS x FROM shop.orders AS o
SELECT o.id, date_part('dow', o.day) AS x FROM shop.orders AS o
SELECT o.id, extract(week FROM o.day) AS x FROM shop.orders AS o
SELECT o.id, age(o.day) AS x FROM shop.orders AS o
SELECT o.id, isnull(o.note) AS x FROM shop.orders AS o
SELECT o.id, decode(o.amount, 1, 'one', 'more') AS x FROM shop.orders AS o
SELECT o.id, iff(o.amount > 1, 1, 2) AS x FROM shop.orders AS o
SELECT o.id, if(o.amount > 1, 'a', DATE '2024-01-01') AS x FROM shop.orders AS o
SELECT o.id, grouping(o.id) AS x FROM shop.orders AS o
SELECT o.id, window(o.at, '1 day') AS x FROM shop.orders AS o
SELECT o.id, raise_error('no') AS x FROM shop.orders AS o
SELECT o.id, assert_true(o.amount > 0) AS x FROM shop.orders AS o
SELECT o.id, sentences(o.note) AS x FROM shop.orders AS o
SELECT o.id, width_bucket(o.note, 1, 2) AS x FROM shop.orders AS o
SELECT COUNT() AS n FROM shop.orders AS o

-- types
SELECT o.id + o.note AS x FROM shop.orders AS o WHERE o.day > 5
SELECT o.day + o.at AS x FROM shop.orders AS o
SELECT o.id, o.item AND o.note AS x FROM shop.orders AS o
SELECT o.id FROM shop.orders AS o WHERE o.amount
SELECT o.id FROM shop.orders AS o WHERE o.day = o.amount
SELECT o.id FROM shop.orders AS o WHERE o.day IN (1, 2)
SELECT o.id, CAST(o.day AS INT) AS x FROM shop.orders AS o
SELECT o.id, CAST(o.amount AS DATE) AS x FROM shop.orders AS o
SELECT o.id, CAST(o.amount AS money) AS x FROM shop.orders AS o
SELECT o.id, o.note::json AS x FROM shop.orders AS o
SELECT o.id, o.shape AS x FROM shop.orders AS o
SELECT * FROM shop.orders AS o
SELECT o.id, NULL AS x FROM shop.orders AS o
SELECT o.id, array() AS x FROM shop.orders AS o
SELECT o.id, array(NULL) AS x FROM shop.orders AS o
SELECT o.id, map('a', o.id) AS x FROM shop.orders AS o
SELECT DISTINCT map('a', o.id) AS x FROM shop.orders AS o
SELECT o.id, named_struct('a', o.id).a AS x FROM shop.orders AS o
SELECT o.id, o.note.a AS x FROM shop.orders AS o
SELECT o.id, o.note:a AS x FROM shop.orders AS o
SELECT o.id, INTERVAL '1' DAY AS x FROM shop.orders AS o
SELECT o.id, o.day + INTERVAL 1 DAY AS x FROM shop.orders AS o
SELECT o.id, o.at - o.at AS x FROM shop.orders AS o
SELECT o.id, o.day - 1 > INTERVAL '1' DAY AS x FROM shop.orders AS o
SELECT o.id, CASE WHEN o.amount > 1 THEN 'a' ELSE o.day END AS x FROM shop.orders AS o WHERE o.amount > 'x'
SELECT o.customer, SUM(o.note) AS x, SUM(o.day) AS y FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, AVG(o.day) AS x FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, bool_and(o.amount) AS x FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, MAX(map('a', o.id)) AS x FROM shop.orders AS o GROUP BY o.customer
SELECT o.id, o.amount[0] AS x FROM shop.orders AS o
SELECT o.id, o.amount || o.day || array(1) AS x FROM shop.orders AS o
SELECT o.id, -o.note AS x, -o.day AS y FROM shop.orders AS o
SELECT c.id FROM crm.customers AS c JOIN shop.orders AS o ON o.day = c.id
SELECT c.id FROM crm.customers AS c JOIN shop.orders AS o ON c.name
SELECT o.id, X'zz' AS x FROM shop.orders AS o
SELECT o.id, DATE '2024-13-01' AS x FROM shop.orders AS o
SELECT o.id, TIMESTAMP 'yesterday' AS x FROM shop.orders AS o

-- names
SELECT o.idd FROM shop.orders AS o
SELECT idd FROM shop.orders
SELECT p.id FROM shop.orders AS o
SELECT orders.id FROM shop.orders AS o
SELECT id FROM shop.orders AS o, shop.items AS i
SELECT o.id FROM shop.order AS o
SELECT o.id FROM shp.orders AS o
SELECT o.id FROM orders AS o
SELECT o.id FROM shop.public.main.orders AS o
SELECT o.id FROM shop.orders AS o, shop.items AS o
SELECT o.id, i.id FROM shop.orders AS o, shop.items AS i
SELECT o.id, o.amount + 1 FROM shop.orders AS o
SELECT o.id AS _tick FROM shop.orders AS o
SELECT o.id FROM shop.orders AS o WHERE total > 3
SELECT o.amount AS total, total + 1 AS more FROM shop.orders AS o
SELECT o.customer AS who, COUNT(*) AS n FROM shop.orders AS o GROUP BY whom
SELECT o.customer, COUNT(*) AS n FROM shop.orders AS o GROUP BY 5
SELECT o.id FROM shop.orders AS o ORDER BY 7 LIMIT 2
SELECT o.id FROM shop.orders AS o ORDER BY 1.5 LIMIT 2
SELECT COUNT(*) AS n FROM shop.orders AS o GROUP BY 1.5
SELECT o.id FROM shop.orders AS o ORDER BY -1 LIMIT 2
SELECT o.id FROM shop.orders AS o ORDER BY 'a' LIMIT 2
SELECT COUNT(*) AS n FROM shop.orders AS o GROUP BY NULL
SELECT COUNT(*) AS n FROM shop.orders AS o GROUP BY ()
SELECT COUNT(*) AS n FROM shop.orders AS o GROUP BY rank() OVER (ORDER BY o.id)
SELECT COUNT(*) AS n FROM shop.orders AS o GROUP BY (SELECT MAX(i.id) FROM shop.items AS i)
SELECT COUNT(*) AS n FROM shop.orders AS o GROUP BY o.id, o.id
SELECT COUNT(*) AS n, COUNT(*) AS m FROM shop.orders AS o GROUP BY GROUPING SETS ((), ())
SELECT MAX(DISTINCT o.id) AS m, COUNT(DISTINCT o.id, NULL) AS n FROM shop.orders AS o
SELECT o.id FROM shop.orders AS o WHERE TRUE AND NULL
SELECT o.id FROM shop.orders AS o WHERE o.id IN ()
SELECT o.id FROM shop.orders AS o WHERE o.id IN (NULL, o.amount, (SELECT MAX(i.id) FROM shop.items AS i))
SELECT o.id FROM shop.orders AS o ORDER BY o.id LIMIT 2 OFFSET o.amount
SELECT GREATEST(*) AS t FROM shop.items AS i
SELECT o.id, CASE END AS t FROM shop.orders AS o
SELECT o.id, o.amount BETWEEN (SELECT MIN(i.id) FROM shop.items AS i) AND 5 AS t FROM shop.orders AS o
SELECT o.id FROM shop.orders AS o JOIN shop.items AS i ON i.id = (SELECT MAX(c.id) FROM crm.customers AS c WHERE c.id = o.customer)
SELECT q.n FROM (SELECT COUNT(*) AS n FROM shop.orders AS o HAVING COUNT(*) > 1) AS q, (SELECT 1 AS one) AS p
SELECT o.id FROM shop.orders AS o ORDER BY nothing LIMIT 2
SELECT o.id FROM shop.orders AS o ORDER BY nothing
SELECT "id" AS x FROM shop.orders AS o
SELECT 'x' AS a, 'y' AS b
SELECT c.id FROM crm.customers AS c JOIN shop.orders AS o USING (customer)
SELECT c.id FROM crm.customers AS c NATURAL JOIN shop.orders AS o
SELECT q.b FROM (SELECT o.id AS a FROM shop.orders AS o) AS q
SELECT q.id FROM (SELECT o.id, i.id FROM shop.orders AS o, shop.items AS i) AS q
SELECT q.a FROM (SELECT o.id FROM shop.orders AS o) AS q (a, b)
WITH q (a, b) AS (SELECT o.id FROM shop.orders AS o) SELECT q.a FROM q
WITH q AS (SELECT o.id FROM shop.orders AS o) SELECT q.id FROM r
WITH q AS (SELECT o.id FROM shop.orders AS o), q AS (SELECT i.id FROM shop.items AS i) SELECT q.id FROM q
SELECT o.id FROM shop.orders AS o JOIN shop.items AS i ON i.nme = o.item
SELECT EXCEPT (id) * FROM shop.items AS i
SELECT * EXCEPT (price) FROM shop.items AS i
SELECT i.* FROM shop.items AS i GROUP BY i.id
SELECT COUNT(i.*) AS n FROM shop.items AS i

-- not a view at all
SELEC o.id FROM shop.orders AS o
SELECT o.id FROM shop.orders AS o WHERE
SELECT o.id shop.orders AS o
SELECT o.id, FROM shop.orders AS o WHERE o.id IN (
SELECT 'open FROM shop.orders AS o
SELECT o.id FROM shop.orders AS o; SELECT 1 AS one
INSERT INTO shop.orders SELECT 1
CREATE VIEW v AS SELECT o.id FROM shop.orders AS o
DELETE FROM shop.orders
EXPLAIN SELECT o.id FROM shop.orders AS o
SHOW TABLES
FROM shop.orders AS o SELECT o.id
FROM shop.orders |> WHERE amount > 1 |> SELECT id
TABLE shop.orders
VALUES (1, 2)
SELECT o.id FROM shop.orders AS o WHERE o.id = :id
SELECT o.id FROM shop.orders AS o WHERE o.id = ?
SELECT o.id FROM shop.orders AS o WHERE o.id = ${id}
SELECT o.id FROM IDENTIFIER('shop.orders') AS o
SELECT o.id FROM shop.orders AS o FOR UPDATE
SELECT o.id INTO t FROM shop.orders AS o
SELECT TOP 5 o.id FROM shop.orders AS o
SELECT DISTINCT ON (o.item) o.id FROM shop.orders AS o
SELECT o.id FROM shop.orders AS o FETCH FIRST 5 ROWS ONLY
SELECT o.id FROM shop.orders AS o WHERE o.note ~ 'a'
SELECT o.id FROM shop.orders AS o WHERE o.note SIMILAR TO 'a'
SELECT o.id FROM shop.orders AS o WHERE o.id = ANY (SELECT i.id FROM shop.items AS i)
SELECT o.id FROM shop.orders AS o WHERE o.id > ALL (SELECT i.id FROM shop.items AS i)
SELECT o.id FROM shop.orders AS o WHERE o.id = SOME (SELECT i.id FROM shop.items AS i)
SELECT o.id, 'it''s' AS x FROM shop.orders AS o
SELECT o.id, '\u0041' AS x FROM shop.orders AS o

-- expressions that nobody has checked
SELECT o.id, transform(array(o.id), v -> v + 1) AS x FROM shop.orders AS o
SELECT o.id, filter(array(o.id), v -> v > 1) AS x FROM shop.orders AS o
SELECT o.id, aggregate(array(o.id), 0, (a, v) -> a + v) AS x FROM shop.orders AS o
SELECT o.id, exists(array(o.id), v -> v > 1) AS x FROM shop.orders AS o
SELECT o.id, forall(array(o.id), v -> v > 1) AS x FROM shop.orders AS o
SELECT o.id, mask(o.note, lowerChar => 'q') AS x FROM shop.orders AS o
SELECT o.id, o.at AT TIME ZONE 'UTC' AS x FROM shop.orders AS o
SELECT o.id, o.note COLLATE UTF8_LCASE AS x FROM shop.orders AS o
SELECT o.id, struct(o.id, o.item) AS x FROM shop.orders AS o
SELECT o.id, (o.id, o.item) AS x FROM shop.orders AS o
SELECT o.id FROM shop.orders AS o WHERE (o.id, o.item) = (1, 'a')
SELECT o.id FROM shop.orders AS o WHERE o.note LIKE ANY ('a%', 'b%')
SELECT o.id FROM shop.orders AS o WHERE o.note NOT LIKE ALL ('a%', 'b%')
SELECT o.id FROM shop.orders AS o WHERE o.note ILIKE 'a%'
SELECT o.id, o.amount << 2 AS x FROM shop.orders AS o
SELECT o.id, o.amount ^ 2 AS x FROM shop.orders AS o
SELECT o.id, o.amount DIV 2 AS x FROM shop.orders AS o
SELECT o.id FROM shop.orders AS o WHERE o.note IS DISTINCT FROM 'a'
SELECT o.id FROM shop.orders AS o WHERE o.active IS UNKNOWN
SELECT o.id FROM shop.orders AS o WHERE (o.amount > 1) IS TRUE
SELECT o.id, PRIOR o.id AS x FROM shop.orders AS o CONNECT BY o.id = o.customer
SELECT o.id, o.* FROM shop.orders AS o
SELECT STRUCT(*) AS x FROM shop.items AS i
SELECT o.id, TRY_CAST(o.note AS INT) AS x FROM shop.orders AS o
SELECT o.id, GREATEST(o.id, o.day) AS x FROM shop.orders AS o
SELECT o.id, CASE o.amount WHEN 1 THEN 'a' WHEN 'b' THEN 2 END AS x FROM shop.orders AS o

-- grouping misused
SELECT o.customer, o.item, COUNT(*) AS n FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, COUNT(*) AS n FROM shop.orders AS o
SELECT o.customer, COUNT(*) AS n FROM shop.orders AS o GROUP BY o.customer HAVING o.item = 'a'
SELECT o.customer, COUNT(*) AS n FROM shop.orders AS o GROUP BY o.customer HAVING nothing > 1
SELECT o.customer FROM shop.orders AS o WHERE COUNT(*) > 1 GROUP BY o.customer
SELECT o.customer, SUM(COUNT(*)) AS n FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, SUM(MAX(o.amount)) AS n FROM shop.orders AS o GROUP BY o.customer
SELECT COUNT(*) AS n FROM shop.orders AS o GROUP BY COUNT(*)
SELECT o.customer + 1 AS a, COUNT(*) AS n FROM shop.orders AS o GROUP BY o.customer + 2
SELECT o.customer, COUNT(*) AS n FROM shop.orders AS o GROUP BY ALL
SELECT o.customer, grouping(o.item) AS g FROM shop.orders AS o GROUP BY ROLLUP (o.customer)
SELECT o.customer, grouping(o.customer) AS g FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, grouping_id(o.customer) AS g, COUNT(*) AS n FROM shop.orders AS o GROUP BY CUBE (o.customer, o.item)
SELECT COUNT(*) AS n FROM shop.orders AS o GROUP BY GROUPING SETS (())
SELECT o.customer, COUNT(*) AS n FROM shop.orders AS o GROUP BY GROUPING SETS ((o.customer), (o.nothing))
SELECT o.customer, COUNT(*) AS n FROM shop.orders AS o GROUP BY o.customer, ROLLUP (o.item), CUBE (o.day)
SELECT o.customer, rank() OVER (PARTITION BY grouping(o.customer) ORDER BY SUM(o.amount)) AS r FROM shop.orders AS o GROUP BY ROLLUP (o.customer)
SELECT o.customer, COUNT(DISTINCT o.item, o.day) AS n, SUM(DISTINCT o.amount) AS s FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, COUNT(DISTINCT *) AS n FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, SUM(o.amount) FILTER (WHERE o.note) AS s FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, SUM(o.amount) FILTER (WHERE o.id IN (SELECT i.id FROM shop.items AS i)) AS s FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, percentile(o.note, 0.5) AS p FROM shop.orders AS o GROUP BY o.customer
SELECT o.customer, median(o.day) AS p FROM shop.orders AS o GROUP BY o.customer
SELECT UPPER(o.item) AS u, LCASE(o.item) AS l, COUNT(*) AS n FROM shop.orders AS o GROUP BY UCASE(o.item)
SELECT o.item AS u FROM shop.orders AS o HAVING MAX(o.amount) > 1
SELECT MAX(o.amount) AS m FROM shop.orders AS o QUALIFY rank() OVER (ORDER BY o.item) = 1

-- windows
SELECT o.id, row_number() AS r FROM shop.orders AS o
SELECT o.id, rank() OVER () AS r FROM shop.orders AS o
SELECT o.id, row_number() OVER (ORDER BY o.amount) AS r FROM shop.orders AS o
SELECT o.id FROM shop.orders AS o WHERE row_number() OVER (ORDER BY o.id) = 1
SELECT o.id, SUM(o.amount) OVER w AS r FROM shop.orders AS o
SELECT o.id, SUM(o.amount) OVER w AS r FROM shop.orders AS o WINDOW w AS (PARTITION BY o.nothing)
SELECT o.id, SUM(o.amount) OVER (w ORDER BY o.id) AS r FROM shop.orders AS o WINDOW w AS (PARTITION BY o.item)
SELECT o.id, lag(o.amount, o.customer) OVER (ORDER BY o.id) AS r FROM shop.orders AS o
SELECT o.id, ntile(o.amount) OVER (PARTITION BY o.item ORDER BY o.id) AS r FROM shop.orders AS o
SELECT o.id, nth_value(o.amount, 0) OVER (PARTITION BY o.item ORDER BY o.id) AS r FROM shop.orders AS o
SELECT o.id, SUM(o.amount) OVER (ORDER BY o.id ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING) AS r FROM shop.orders AS o
SELECT o.id, SUM(o.amount) OVER (PARTITION BY o.item ORDER BY o.note RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS r FROM shop.orders AS o
SELECT o.id, SUM(o.amount) OVER (PARTITION BY o.item ORDER BY o.id, o.note RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS r FROM shop.orders AS o
SELECT o.id, last_value(o.amount) OVER (PARTITION BY o.item ORDER BY o.amount RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS r FROM shop.orders AS o
SELECT o.id, SUM(SUM(o.amount) OVER (PARTITION BY o.item)) OVER (PARTITION BY o.day) AS r FROM shop.orders AS o
SELECT o.id, COUNT(DISTINCT o.item) OVER (PARTITION BY o.day) AS r FROM shop.orders AS o
SELECT o.id, ucase(o.item) OVER (PARTITION BY o.day) AS r FROM shop.orders AS o
SELECT o.id, session_window(o.at, '5 minutes') AS r FROM shop.orders AS o
SELECT o.id, row_number() OVER (PARTITION BY o.item ORDER BY o.amount) AS a, row_number() OVER (PARTITION BY o.day ORDER BY o.amount) AS b FROM shop.orders AS o
SELECT i.kind, row_number() OVER (PARTITION BY i.kind ORDER BY i.price) AS a, row_number() OVER (PARTITION BY i.price ORDER BY i.kind) AS b FROM shop.items AS i
SELECT i.kind, MAX(lag(i.price) OVER (PARTITION BY i.kind ORDER BY i.price)) AS m FROM shop.items AS i GROUP BY i.kind
SELECT i.kind, IGNORE_NULLS(lag(i.price)) OVER (PARTITION BY i.kind ORDER BY i.price) AS m FROM shop.items AS i
SELECT i.kind, first_value(i.price) IGNORE NULLS OVER (PARTITION BY i.kind ORDER BY i.name) AS m FROM shop.items AS i

-- sub-queries
SELECT o.id, (SELECT i.price, i.name FROM shop.items AS i WHERE i.name = o.item) AS x FROM shop.orders AS o
SELECT o.id, (SELECT i.price FROM shop.items AS i WHERE i.name = o.item) AS x FROM shop.orders AS o
SELECT o.id, (SELECT i.price FROM shop.items AS i WHERE i.name = o.item LIMIT 1) AS x FROM shop.orders AS o
SELECT o.id, (SELECT MAX(i.price) FROM shop.items AS i WHERE i.name > o.item) AS x FROM shop.orders AS o
SELECT o.id, (SELECT MAX(i.price + o.amount) FROM shop.items AS i WHERE i.name = o.item) AS x FROM shop.orders AS o
SELECT o.id, (SELECT ucase(MAX(i.name)) FROM shop.items AS i WHERE i.name > lcase(o.item)) AS x FROM shop.orders AS o
SELECT o.id FROM shop.orders AS o WHERE o.id IN (SELECT i.id, i.name FROM shop.items AS i)
SELECT o.id FROM shop.orders AS o WHERE (o.id, o.item) IN (SELECT i.id FROM shop.items AS i)
SELECT o.id FROM shop.orders AS o WHERE o.day IN (SELECT i.id FROM shop.items AS i)
SELECT o.id FROM shop.orders AS o WHERE o.id IN (SELECT i.id FROM shop.items AS i WHERE i.price > o.price)
SELECT o.id FROM shop.orders AS o WHERE o.id NOT IN (SELECT i.id FROM shop.items AS i WHERE i.price > o.price)
SELECT o.id FROM shop.orders AS o WHERE EXISTS (SELECT i.nothing FROM shop.items AS i WHERE i.name = o.item)
SELECT o.id FROM shop.orders AS o WHERE EXISTS (SELECT 1 FROM shop.items AS i WHERE i.name = p.item)
SELECT o.id FROM shop.orders AS o WHERE NOT EXISTS (SELECT 1 FROM shop.items AS i WHERE i.price < o.price OR i.name = o.item)
SELECT o.id FROM shop.orders AS o WHERE EXISTS (SELECT 1 FROM shop.items AS i GROUP BY o.item HAVING COUNT(*) > 1)
SELECT o.id FROM shop.orders AS o WHERE EXISTS (SELECT i.id FROM shop.items AS i WHERE i.name = o.item UNION ALL SELECT c.id FROM crm.customers AS c WHERE c.id = o.customer)
SELECT o.id FROM shop.orders AS o WHERE o.amount > (SELECT AVG(p.amount) FROM shop.orders AS p WHERE p.item <> o.item)
SELECT o.id FROM shop.orders AS o WHERE o.amount > (SELECT SUM(i.price) FROM shop.items AS i WHERE i.name = o.item GROUP BY i.kind)
SELECT o.id FROM shop.orders AS o GROUP BY o.id HAVING COUNT(*) > (SELECT MAX(i.id) FROM shop.items AS i WHERE i.id > o.id)
SELECT o.id, EXISTS (SELECT 1 FROM shop.items AS i WHERE i.name = o.item) AS x FROM shop.orders AS o
SELECT o.id, o.id IN (SELECT i.id FROM shop.items AS i) AS x FROM shop.orders AS o
SELECT o.id, o.amount NOT IN (SELECT i.id FROM shop.items AS i) AS x FROM shop.orders AS o
SELECT o.id FROM shop.orders AS o JOIN shop.items AS i ON EXISTS (SELECT 1 FROM crm.customers AS c WHERE c.id = o.customer AND c.name = i.name)
SELECT o.id FROM shop.orders AS o LEFT JOIN shop.items AS i ON i.id IN (SELECT c.id FROM crm.customers AS c)
SELECT o.id, (SELECT COUNT(*) FROM (SELECT i.id FROM shop.items AS i WHERE i.name = o.item) AS q) AS x FROM shop.orders AS o
SELECT o.id, (SELECT SUM(q.n) FROM (SELECT COUNT(*) AS n FROM shop.items AS i WHERE i.name = o.item GROUP BY i.kind) AS q) AS x FROM shop.orders AS o
SELECT o.id, (SELECT rank() OVER (ORDER BY i.price) FROM shop.items AS i WHERE i.name = o.item) AS x FROM shop.orders AS o
SELECT o.id, (SELECT DISTINCT i.kind FROM shop.items AS i WHERE i.price > o.price) AS x FROM shop.orders AS o
SELECT o.id, (VALUES (1)) AS x FROM shop.orders AS o
SELECT o.id, (SELECT 1) AS x FROM shop.orders AS o
SELECT o.id FROM shop.orders AS o ORDER BY (SELECT MAX(i.id) FROM shop.items AS i) LIMIT 3
SELECT o.id, MAX((SELECT MAX(i.id) FROM shop.items AS i WHERE i.name = o.item)) AS x FROM shop.orders AS o GROUP BY o.id

-- set operations
SELECT o.id FROM shop.orders AS o UNION SELECT i.id, i.name FROM shop.items AS i
SELECT o.id FROM shop.orders AS o UNION ALL SELECT i.id, i.name FROM shop.items AS i
SELECT o.id, o.day FROM shop.orders AS o UNION ALL SELECT i.id, i.id FROM shop.items AS i
SELECT o.id, o.item FROM shop.orders AS o INTERSECT SELECT i.id FROM shop.items AS i
SELECT o.id FROM shop.orders AS o EXCEPT ALL SELECT i.id, i.name FROM shop.items AS i
SELECT o.id, array(o.item) AS a FROM shop.orders AS o EXCEPT SELECT i.id, map('a', i.name) FROM shop.items AS i
SELECT o.id FROM shop.orders AS o UNION BY NAME SELECT i.id FROM shop.items AS i
SELECT o.id FROM shop.orders AS o UNION ALL BY NAME SELECT i.name FROM shop.items AS i
SELECT o.id FROM shop.orders AS o UNION SELECT i.id FROM shop.items AS i ORDER BY nothing LIMIT 1
SELECT o.id FROM shop.orders AS o UNION SELECT i.id FROM shop.items AS i ORDER BY id + 1 LIMIT 1
SELECT o.id FROM shop.orders AS o UNION ALL SELECT NULL FROM shop.items AS i
SELECT o.id, NULL AS x FROM shop.orders AS o UNION ALL SELECT i.id, NULL FROM shop.items AS i
SELECT o.id FROM shop.orders AS o MINUS SELECT i.id FROM shop.items AS i
SELECT o.id FROM shop.orders AS o UNION SELECT i.idd FROM shop.items AS i
SELECT o.id FROM shop.orders AS o UNION ALL SELECT i.id FROM shop.itms AS i

-- FROM
SELECT o.id, e.x FROM shop.orders AS o LATERAL VIEW explode(array(o.id)) e AS x
SELECT o.id, e.x FROM shop.orders AS o LATERAL VIEW OUTER posexplode(array(o.id)) e AS p, x
SELECT o.id, explode(array(o.id)) AS x FROM shop.orders AS o
SELECT o.id, explode_outer(array(o.id)) AS x FROM shop.orders AS o
SELECT o.id, inline(array(struct(o.id))) AS x FROM shop.orders AS o
SELECT o.id, stack(2, o.id, o.amount) AS x FROM shop.orders AS o
SELECT o.id, json_tuple(o.note, 'a') AS x FROM shop.orders AS o
SELECT o.id, g.x FROM shop.orders AS o, generate_series(1, 3) AS g (x)
SELECT o.id, g.id AS x FROM shop.orders AS o, range(3) AS g
SELECT o.id, g.x FROM shop.orders AS o, LATERAL (SELECT o.id + 1 AS x) AS g
SELECT o.id, g.x FROM shop.orders AS o CROSS JOIN UNNEST(array(1, 2)) AS g (x)
SELECT o.id, g.x FROM shop.orders AS o, explode(array(1, 2)) AS g (x)
SELECT o.id, v.a FROM shop.orders AS o JOIN (VALUES (1, 'x')) AS v (a, b) ON v.a = o.id
SELECT o.id FROM shop.orders AS o TABLESAMPLE (10 PERCENT)
SELECT o.id FROM shop.orders TABLESAMPLE (5 ROWS) AS o
SELECT * FROM shop.items PIVOT (SUM(price) FOR kind IN ('a', 'b'))
SELECT * FROM shop.items UNPIVOT (v FOR n IN (price, id))
SELECT o.id FROM shop.orders AS o TRANSFORM USING 'cat'
SELECT TRANSFORM (o.id) USING 'cat' AS (x) FROM shop.orders AS o
SELECT o.id FROM shop.orders VERSION AS OF 3 AS o
SELECT o.id FROM shop.orders TIMESTAMP AS OF '2024-01-01' AS o
SELECT o.id FROM ROWS FROM (generate_series(1, 2)) AS o
SELECT o.id FROM delta.`/tmp/x` AS o
SELECT o.id FROM read_files('/tmp') AS o, shop.items AS i
SELECT o.id FROM shop.orders AS o ASOF JOIN shop.items AS i ON i.id = o.id
SELECT o.id FROM shop.orders AS o LEFT JOIN shop.items AS i
SELECT o.id FROM shop.orders AS o LEFT JOIN shop.items AS i USING (id, nothing)
SELECT o.id FROM shop.orders AS o LEFT JOIN shop.items AS i ON i.price < o.price
SELECT o.id FROM shop.orders AS o FULL JOIN shop.items AS i ON i.price < o.price
SELECT o.id, i.name FROM shop.orders AS o LEFT SEMI JOIN shop.items AS i ON i.id = o.id
SELECT o.id FROM shop.orders AS o LEFT ANTI JOIN shop.items AS i ON i.price < o.price
SELECT id FROM shop.orders AS o RIGHT JOIN shop.items AS i USING (id)
SELECT id, COUNT(*) AS n FROM shop.orders AS o FULL JOIN shop.items AS i USING (id) GROUP BY id
WITH RECURSIVE q AS (SELECT o.id, 1 AS n FROM shop.orders AS o UNION ALL SELECT q.id, q.n + 1 FROM q WHERE q.n < 3) SELECT q.id, q.n FROM q
WITH RECURSIVE q (id, n) AS (SELECT o.id, 'a' FROM shop.orders AS o UNION ALL SELECT q.id FROM q) SELECT q.id FROM q

-- orders and limits
SELECT o.id FROM shop.orders AS o LIMIT 3
SELECT o.id FROM shop.orders AS o LIMIT 1 + 2
SELECT o.id FROM shop.orders AS o ORDER BY o.id LIMIT o.amount
SELECT o.id FROM shop.orders AS o ORDER BY o.id LIMIT -1
SELECT o.id FROM shop.orders AS o ORDER BY o.id LIMIT (SELECT MAX(i.id) FROM shop.items AS i)
SELECT o.id FROM shop.orders AS o ORDER BY o.id OFFSET 2
SELECT o.id, array(o.id) AS a FROM shop.orders AS o ORDER BY o.id LIMIT 2
SELECT o.id, map('a', o.id) AS a FROM shop.orders AS o ORDER BY o.item LIMIT 2
SELECT DISTINCT o.item FROM shop.orders AS o ORDER BY o.amount LIMIT 2
SELECT o.id FROM shop.orders AS o ORDER BY ALL LIMIT 2
SELECT o.id FROM shop.orders AS o CLUSTER BY o.id
SELECT o.id FROM shop.orders AS o SORT BY o.id LIMIT 2
SELECT o.id FROM shop.orders AS o ORDER BY rand() LIMIT 2

-- plain views, so that it is seen that those are taken
SELECT o.id, ucase(o.item) AS item FROM shop.orders AS o WHERE nvl(o.amount, 0) > 3
SELECT o.customer, COUNT(*) AS n, SUM(o.amount) AS s, MIN(o.price) AS p FROM shop.orders AS o GROUP BY o.customer HAVING COUNT(*) > 2
SELECT c.name, i.kind, SUM(o.amount) AS sold FROM shop.orders AS o JOIN crm.customers AS c ON c.id = o.customer LEFT JOIN shop.items AS i ON i.name = o.item GROUP BY c.name, i.kind
