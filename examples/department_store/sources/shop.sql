-- The database behind the tills.
CREATE TABLE products (
    product_id int PRIMARY KEY,
    name text NOT NULL,
    price numeric(8, 2) NOT NULL,
    cost numeric(8, 2) NOT NULL
);
CREATE TABLE sales (
    sale_id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    store_id int NOT NULL,   -- in the database "chain": nobody checks it
    clerk_id int,            -- in the database "staff"
    product_id int NOT NULL REFERENCES products ON DELETE CASCADE,
    quantity int NOT NULL
);
CREATE INDEX ON sales (store_id);
CREATE INDEX ON sales (clerk_id);
CREATE INDEX ON sales (product_id);
ALTER TABLE sales REPLICA IDENTITY FULL;  -- asked by probes, so its log has to tell whole old rows
