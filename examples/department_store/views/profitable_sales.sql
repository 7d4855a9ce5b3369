-- Sales that earned something, with the city they were made in: two databases, three relations.
SELECT s.sale_id, st.city, p.name AS product, s.quantity, s.quantity * (p.price - p.cost) AS profit
FROM shop.sales AS s
JOIN shop.products AS p ON p.product_id = s.product_id
JOIN chain.stores AS st ON st.store_id = s.store_id
WHERE s.quantity * (p.price - p.cost) >= 200
