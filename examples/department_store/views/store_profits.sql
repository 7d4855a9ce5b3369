-- What every store has earned by its sales: rows of one database, grouped.
SELECT s.store_id, SUM(s.quantity * (p.price - p.cost)) AS profit, COUNT(*) AS sales
FROM shop.sales AS s
JOIN shop.products AS p ON p.product_id = s.product_id
GROUP BY s.store_id
