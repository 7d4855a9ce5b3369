-- The database of the personnel office.
CREATE TABLE employees (
    employee_id int PRIMARY KEY,
    name text NOT NULL,
    store_id int NOT NULL,   -- in the database "chain": nobody checks it
    manager_id int,
    salary numeric(8, 2) NOT NULL
);
CREATE INDEX ON employees (manager_id);
CREATE INDEX ON employees (store_id);
ALTER TABLE employees REPLICA IDENTITY FULL;  -- asked by probes, so its log has to tell whole old rows
