-- Sales by clerks who helped out in another store than their own: all three databases, one relation twice.
SELECT s.sale_id, e.name AS clerk, home.city AS employed_in, away.city AS sold_in, s.quantity
FROM shop.sales AS s
JOIN staff.employees AS e ON e.employee_id = s.clerk_id
JOIN chain.stores AS home ON home.store_id = e.store_id
JOIN chain.stores AS away ON away.store_id = s.store_id
WHERE e.store_id <> s.store_id AND s.quantity >= 6
