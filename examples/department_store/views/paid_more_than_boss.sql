-- Employees who earn more than whom they report to: a relation joined with itself.
SELECT st.city, e.name, e.salary, boss.name AS boss, e.salary - boss.salary AS more
FROM staff.employees AS e
JOIN staff.employees AS boss ON boss.employee_id = e.manager_id AND boss.salary < e.salary
JOIN chain.stores AS st ON st.store_id = e.store_id
