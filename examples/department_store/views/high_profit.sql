-- Stores that earn far more than they cost: all three databases, two levels of aggregation, over another view.
SELECT st.store_id, st.city, p.profit, e.salaries, p.profit - st.expenses - e.salaries AS surplus
FROM chain.stores AS st
JOIN store_profits AS p ON p.store_id = st.store_id
JOIN (SELECT store_id, SUM(salary) AS salaries FROM staff.employees GROUP BY store_id) AS e ON e.store_id = st.store_id
WHERE p.profit - st.expenses - e.salaries > 1000
