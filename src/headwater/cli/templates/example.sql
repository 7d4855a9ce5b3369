-- The view "example": every sale with its product's name.
SELECT s.sale_id, p.name AS product, s.quantity, s.quantity * p.price AS amount
FROM shop.sales AS s
JOIN shop.products AS p ON p.product_id = s.product_id
