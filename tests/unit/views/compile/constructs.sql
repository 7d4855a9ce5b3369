-- Each construct: its name, the steps it becomes (* is kept; ... if they are not of interest), and an example.

-- join: Join*
SELECT r.x, s.w FROM a.r JOIN a.s ON r.x = s.x WHERE r.y > 0;

-- order alone: Join*
SELECT x FROM a.r ORDER BY y;

-- a query inside that is a join: Join*
SELECT q.x, s.w FROM (SELECT x + 1 AS x FROM a.r) q JOIN a.s ON q.x = s.x;

-- group: Join Group* Join*
SELECT x, COUNT(*) AS n, SUM(y) AS s, AVG(y) AS m, COUNT(z) AS k FROM a.r GROUP BY x;

-- one group: Join Group* Join*
SELECT COUNT(*) AS n, SUM(y) AS s FROM a.r WHERE x = 1;

-- having: Join Group* Join*
SELECT x FROM a.r GROUP BY x HAVING SUM(y) > 2 AND COUNT(*) < 4;

-- having an output: Join Group* Join*
SELECT x, SUM(y) AS s FROM a.r GROUP BY 1 HAVING s > 2;

-- group by an expression: Join Group* Join*
SELECT x + 1 AS p, COUNT(*) AS n FROM a.r GROUP BY x + 1;

-- group by an output: Join Group* Join*
SELECT x + 1 AS p, COUNT(*) AS n FROM a.r GROUP BY p;

-- group by all: Join Group* Join*
SELECT x, y, COUNT(*) AS n FROM a.r GROUP BY ALL;

-- truths: Join Group* Join*
SELECT x, BOOL_AND(y > 1) AS b, BOOL_OR(y > 1) AS c FROM a.r GROUP BY x;

-- filter: Join Group* Join*
SELECT x, SUM(y) FILTER (WHERE z > 1) AS s, COUNT(*) FILTER (WHERE z = 1) AS n FROM a.r GROUP BY x;

-- extremes: Join Group* Regroup Join*
SELECT x, MIN(y) AS a, MAX(z) AS b, COUNT(*) AS n, SUM(z) AS s FROM a.r GROUP BY x;

-- extreme of all: Join Group* Regroup Join*
SELECT MAX(y) AS m FROM a.r;

-- distinct: Join Group* Join*
SELECT DISTINCT x, y FROM a.r;

-- count distinct: Join Group* Join Group* Join*
SELECT x, COUNT(DISTINCT y) AS d FROM a.r GROUP BY x;

-- count distinct and totals: Join Group* Join Group* Join*
SELECT x, COUNT(DISTINCT y) AS d, SUM(DISTINCT y) AS e, SUM(z) AS s, COUNT(*) AS n FROM a.r GROUP BY x;

-- distinct of two kinds: Join* Regroup Join*
SELECT x, COUNT(DISTINCT y) AS d, COUNT(DISTINCT z) AS e FROM a.r GROUP BY x;

-- rows of a group: Join* Regroup Join*
SELECT x, MEDIAN(y) AS v FROM a.r GROUP BY x;

-- a moment of a group: Join* Regroup Join*
SELECT x, VAR_POP(y) AS v FROM a.r GROUP BY x;

-- groups of groups: Join Group* Join Group* Join*
SELECT n, COUNT(*) AS m FROM (SELECT x, COUNT(*) AS n FROM a.r GROUP BY x) q GROUP BY n;

-- rollup: ...
SELECT x, y, COUNT(*) AS n, GROUPING(x) AS g FROM a.r WHERE x = 1 OR TRUE GROUP BY ROLLUP (x, y);

-- cube: ...
SELECT x, y, SUM(z) AS n, GROUPING(y) AS g FROM a.r GROUP BY CUBE (x, y);

-- grouping sets: ...
SELECT x, y, COUNT(*) AS n, MAX(z) AS m, GROUPING_ID(x, y) AS g FROM a.r GROUP BY GROUPING SETS ((x, y), (y), ());

-- grouping sets of a list, and their number: ...
SELECT x, y, COUNT(z) AS n, GROUPING_ID(y, x) AS g FROM a.r GROUP BY y, x GROUPING SETS ((x), (y, x), ());

-- rollup of an expression, having: ...
SELECT x + 1 AS p, COUNT(*) AS n, GROUPING_ID(x + 1, y) AS g FROM a.r GROUP BY ROLLUP (x + 1, y) HAVING COUNT(*) > 1;

-- qualify: Join* Regroup Join*
SELECT x, y FROM a.r QUALIFY RANK() OVER (PARTITION BY x ORDER BY y) = 1;

-- qualify groups: ...
SELECT x, n FROM (SELECT x, COUNT(*) AS n FROM a.r GROUP BY x) q QUALIFY SUM(n) OVER (PARTITION BY x > 1) > 2;

-- filter of every kind: ...
SELECT x, AVG(y) FILTER (WHERE z > 1) AS a, MAX(y) FILTER (WHERE z > 0) AS m, BOOL_OR(y > 1) FILTER (WHERE z > 0) AS b, COUNT(DISTINCT y) FILTER (WHERE z = 1) AS d FROM a.r GROUP BY x;

-- truths of all rows: ...
SELECT BOOL_AND(y > 0) AS b, BOOL_OR(z > 2) AS c FROM a.r;

-- exists: Join Group* Join*
SELECT x FROM a.r WHERE EXISTS (SELECT 1 FROM a.s WHERE s.x = r.x);

-- exists by key: Join*
SELECT x FROM a.r WHERE EXISTS (SELECT 1 FROM b.u WHERE u.id = r.x);

-- exists at all: Join Group* Join* Join*
SELECT x FROM a.r WHERE EXISTS (SELECT 1 FROM a.s WHERE s.x > 2);

-- exists, any condition: Join Group* Join*
SELECT x FROM a.r WHERE EXISTS (SELECT 1 FROM a.s WHERE s.x = r.x AND s.w <> r.y);

-- exists, of a window: ...
SELECT id FROM b.u WHERE EXISTS (SELECT RANK() OVER (PARTITION BY r.z ORDER BY r.y) AS k FROM a.r WHERE r.x > 1);

-- not exists: Join Join Group* Join Union*
SELECT x FROM a.r WHERE NOT EXISTS (SELECT 1 FROM a.s WHERE s.x = r.x);

-- in: Join Group* Join*
SELECT x FROM a.r WHERE x IN (SELECT x FROM a.s WHERE w > 1);

-- in pairs: Join Group* Join*
SELECT x FROM a.r WHERE (x, y) IN (SELECT x, w FROM a.s);

-- not in: ...
SELECT x FROM a.r WHERE x NOT IN (SELECT x FROM a.s);

-- not in, never null: Join Join Union*
SELECT id FROM b.u WHERE id NOT IN (SELECT id FROM b.u AS v WHERE v.x > 1);

-- not in, linked: ...
SELECT x FROM a.r WHERE x NOT IN (SELECT x FROM a.s WHERE s.w = r.y);

-- a test in an expression: ...
SELECT x, EXISTS (SELECT 1 FROM a.s WHERE s.x = r.x) AS e FROM a.r;

-- membership in an expression: ...
SELECT x, IF(x IN (SELECT x FROM a.s), 1, 0) AS e, IF(x NOT IN (SELECT w FROM a.s), 1, 0) AS f FROM a.r;

-- membership as a value: ...
SELECT x, x IN (SELECT x FROM a.s) AS e FROM a.r;

-- no membership as a value: ...
SELECT x, x NOT IN (SELECT w FROM a.s) AS e FROM a.r;

-- membership as a value, linked: ...
SELECT x, x IN (SELECT s.x FROM a.s WHERE s.w = r.y) AS e, NOT (x IN (SELECT t.k FROM b.t WHERE t.y = r.y)) AS f FROM a.r;

-- membership of a query without rows: ...
SELECT x, x IN (SELECT x FROM a.s WHERE FALSE) AS e, x NOT IN (SELECT w FROM a.s WHERE FALSE) AS f FROM a.r;

-- nothing of a type: Join*
SELECT CAST(NULL AS INT) AS n, x FROM a.r;

-- nothing of a type beside a sum: ...
SELECT CAST(NULL AS INT) AS n, SUM(x) AS s FROM a.r UNION ALL SELECT w, CAST(NULL AS BIGINT) FROM a.s;

-- a value: Join Group* Regroup* Join*
SELECT x, (SELECT MAX(w) FROM a.s) AS m FROM a.r;

-- a linked value: Join Group* Join*
SELECT x FROM a.r WHERE y > (SELECT AVG(w) FROM a.s WHERE s.x = r.x);

-- a linked count: ...
SELECT x, (SELECT COUNT(*) FROM a.s WHERE s.x = r.x) AS n FROM a.r;

-- a linked sum in an expression: ...
SELECT x, COALESCE((SELECT SUM(w) FROM a.s WHERE s.x = r.x), 0) + y AS n FROM a.r;

-- a linked average in a condition: ...
SELECT x, y FROM a.r WHERE y >= (SELECT AVG(w) FROM a.s WHERE s.x = r.x) OR z = (SELECT COUNT(*) FROM b.t WHERE t.k = r.z);

-- a linked value within a linked value: ...
SELECT x, (SELECT MAX(s.w) FROM a.s WHERE s.x = r.x AND s.w > (SELECT MIN(t.k) FROM b.t WHERE t.y = s.x)) AS m FROM a.r;

-- a linked value, grouped: ...
SELECT r.x, SUM(r.y) AS s FROM a.r WHERE r.z <= (SELECT MAX(w) FROM a.s WHERE s.x = r.x) GROUP BY r.x;

-- a value of one row: ...
SELECT x, (SELECT u.x FROM b.u WHERE u.id = r.x) AS m FROM a.r;

-- a value of one row where it is read: ...
SELECT u.id FROM b.u WHERE u.x <= (SELECT s.w FROM a.s WHERE s.x = u.id + 90) OR u.x IS NULL;

-- left join: Join Join Join Group* Join Union*
SELECT r.x, s.w FROM a.r LEFT JOIN a.s ON r.x = s.x AND s.w > 1;

-- left join, any condition: ...
SELECT r.x, s.w FROM a.r LEFT JOIN a.s ON r.x < s.x AND r.y > 0;

-- right join: ...
SELECT r.x, s.w FROM a.r RIGHT JOIN a.s ON r.x = s.x;

-- full join: ...
SELECT r.x, s.w FROM a.r FULL JOIN a.s ON r.x = s.x AND r.y = s.w;

-- left join using: ...
SELECT x, s.w FROM a.r LEFT JOIN a.s USING (x);

-- semi join: Join Group* Join*
SELECT x FROM a.r LEFT SEMI JOIN a.s ON r.x = s.x;

-- anti join: Join Join Group* Join Union*
SELECT x FROM a.r LEFT ANTI JOIN a.s ON r.x = s.x;

-- union all: Join Join Union*
SELECT x FROM a.r UNION ALL SELECT w FROM a.s;

-- union: Join Join Union Group* Join*
SELECT x FROM a.r UNION SELECT w FROM a.s;

-- intersect: Join Join Union Group* Join*
SELECT x FROM a.r INTERSECT SELECT w FROM a.s;

-- except: Join Join Union Group* Join*
SELECT x FROM a.r EXCEPT SELECT w FROM a.s;

-- with: Join Group* Join*
WITH q AS (SELECT x, COUNT(*) AS n FROM a.r GROUP BY x) SELECT p.x FROM q p JOIN q o ON p.n = o.n;

-- with, a join read twice: Join* Join*
WITH q AS (SELECT r.x, s.w FROM a.r JOIN a.s ON r.x = s.x) SELECT p.x FROM q p JOIN q o ON p.w = o.x;

-- with names: Join Group* Join*
WITH q(k, n) AS (SELECT x, COUNT(*) FROM a.r GROUP BY x) SELECT k, n FROM q WHERE n > 1;

-- window: Join* Regroup Join*
SELECT x, RANK() OVER (PARTITION BY x ORDER BY y) AS k, SUM(z) OVER (PARTITION BY x) AS s FROM a.r;

-- windows: Join* Regroup Join* Regroup Join*
SELECT x, COUNT(*) OVER (PARTITION BY x) AS a, COUNT(*) OVER (PARTITION BY y) AS b FROM a.r;

-- a window over groups: ...
SELECT x, SUM(COUNT(*)) OVER (PARTITION BY x > 1) AS s FROM a.r GROUP BY x;

-- limit: Join* Regroup Join*
SELECT x, y, z FROM a.r ORDER BY x DESC, y NULLS LAST, z LIMIT 3 OFFSET 1;

-- limit by an output that a column is called as well: Join* Regroup Join*
SELECT x + 1 AS y, y AS w, z FROM a.r ORDER BY -y, w, z LIMIT 3;

-- except all: Join Join Union* Regroup Join*
SELECT x FROM a.r EXCEPT ALL SELECT w FROM a.s;

-- intersect all: Join Join Union* Regroup Join*
SELECT x, y FROM a.r INTERSECT ALL SELECT w, x FROM a.s;

-- recomputed: Join* Recompute*
SELECT x FROM a.r JOIN VALUES (1), (2) AS few(n) ON r.x = few.n;

-- left join of a query whose values are never null: ...
SELECT r.x, q.c, q.one FROM a.r LEFT JOIN (SELECT x, COALESCE(w, 7) AS c, 1 AS one FROM a.s) q ON r.x = q.x;

-- full join of constants: ...
SELECT p.one, q.one AS two FROM (SELECT x, 1 AS one FROM a.r) p FULL JOIN (SELECT x, 1 AS one FROM a.s) q ON p.x = q.x;

-- rollup written after the list: ...
SELECT x, y, COUNT(*) AS n, MAX(z) AS m FROM a.r GROUP BY x, y WITH ROLLUP;

-- cube written after the list: ...
SELECT x, y, SUM(z) AS n, GROUPING_ID(x, y) AS g FROM a.r GROUP BY 1, 2 WITH CUBE;

-- grouping sets of nothing: ...
SELECT COUNT(*) AS n, MAX(x) AS m FROM a.r GROUP BY GROUPING SETS (());

-- grouping sets, the extremes of all rows: ...
SELECT y, MAX(x) AS m FROM a.r GROUP BY GROUPING SETS ((), (y));

-- a window by grouping, and grouping beside it: ...
SELECT x, y, GROUPING(x) + GROUPING(y) AS g, RANK() OVER (PARTITION BY GROUPING(x) + GROUPING(y), CASE WHEN GROUPING(y) = 0 THEN x END ORDER BY SUM(z) DESC) AS k FROM a.r GROUP BY ROLLUP (x, y);

-- a window that has another's name: Join* Regroup Join*
SELECT x, SUM(y) OVER w2 AS s FROM a.r WINDOW w1 AS (PARTITION BY x), w2 AS w1;

-- a named window over groups: ...
SELECT x, RANK() OVER w AS k FROM a.r GROUP BY ROLLUP (x) WINDOW w AS (PARTITION BY GROUPING(x) ORDER BY SUM(y));

-- a sum of a linked count: Join* Join* Recompute*
SELECT r.x, (SELECT SUM(n) FROM (SELECT COUNT(*) AS n FROM a.s WHERE s.x = r.x) AS q) AS m FROM a.r;

-- a linked count that another query reads: Join* Join* Recompute*
SELECT r.x FROM a.r WHERE EXISTS (SELECT n FROM (SELECT COUNT(*) AS n FROM a.s WHERE s.x = r.x) AS q WHERE n = 0);

-- a linked having: Join* Join* Recompute*
SELECT r.x FROM a.r WHERE EXISTS (SELECT COUNT(*) FROM a.s HAVING COUNT(*) > r.x);

-- not of or, membership: ...
SELECT r.x, r.y FROM a.r WHERE NOT (r.y > 1 OR r.x IN (SELECT s.x FROM a.s));

-- not of and, membership: ...
SELECT r.x, r.y FROM a.r WHERE NOT (r.y > 1 AND r.x IN (SELECT s.x FROM a.s WHERE s.w > 0));

-- not of not in: ...
SELECT r.x, r.y FROM a.r WHERE NOT (r.y > 1 AND (r.z = 1 OR r.x NOT IN (SELECT s.x FROM a.s WHERE s.w = r.z)));

-- not of or, membership as a value: ...
SELECT r.x, NOT (r.y > 1 OR r.x IN (SELECT s.x FROM a.s)) AS b FROM a.r;

-- membership as a value, compared: Join* Join* Recompute*
SELECT r.x FROM a.r WHERE (r.x NOT IN (SELECT s.x FROM a.s)) = FALSE;

-- membership as a value that another query denies: Join* Join* Recompute*
SELECT q.x FROM (SELECT x, x IN (SELECT s.x FROM a.s) AS e FROM a.r) AS q WHERE NOT q.e;

-- a union with nothing of no type: Join Join Union*
SELECT x, y FROM a.r UNION ALL SELECT x, NULL FROM a.s;

-- a set operation after nothing of no type: ...
SELECT x, NULL AS y FROM a.r EXCEPT SELECT x, w FROM a.s;

-- groups of nothing of no type: ...
SELECT COUNT(*) AS n, COUNT(q.n) AS m FROM (SELECT x, NULL AS n FROM a.r) AS q GROUP BY q.n;

-- a window by nothing of no type: ...
SELECT x, SUM(y) OVER (PARTITION BY NULL) AS k FROM a.r;

-- a left join of nothing of no type: ...
SELECT r.x, q.n IS NULL AS b, q.w FROM a.r LEFT JOIN (SELECT x, w, NULL AS n FROM a.s) AS q ON r.x = q.x;

-- relations that make no difference: Join*
WITH q AS (SELECT w FROM a.s) SELECT x FROM a.r WHERE EXISTS (SELECT COUNT(*) FROM b.t WHERE t.k = r.x) ORDER BY (SELECT MAX(u.x) FROM b.u);

-- a value and no relation beside it: Join* Recompute*
SELECT (SELECT MAX(w) FROM a.s) AS m;

-- a test that finds its own values: ...
SELECT r.x FROM a.r WHERE r.x IN (SELECT r.y FROM a.s);
