-- The database of the chain's head office.
CREATE TABLE stores (
    store_id int PRIMARY KEY,
    city text NOT NULL,
    expenses numeric(10, 2) NOT NULL
);
