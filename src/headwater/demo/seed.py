"""The rows that the department store opens with: one statement list per source."""

from __future__ import annotations

from collections.abc import Mapping

CITIES = ("Antwerp", "Bergen", "Cádiz", "Delft", "Evora", "Fulda", "Ghent", "Hamar", "Imola", "Jena", "Kolding", "Lund")
NAMES = ("Ada", "Bo", "Chloé", "Dag", "Eva", "Finn", "Gro", "Hans", "Ida", "Jon", "Kari", "Lars", "Mia", "Nils", "Åse")
GOODS = ("coat", "hat", "kettle", "lamp", "mirror", "scarf", "shirt", "teapot", "towel", "umbrella")
MAKES = ("plain", "fine", "grand", "royal")

STORE_COUNT = len(CITIES)
PRODUCT_COUNT = len(GOODS) * len(MAKES)
EMPLOYEE_COUNT = 60
SALE_COUNT = 300


def _texts(values: tuple[str, ...]) -> str:
    return "ARRAY[" + ", ".join(f"'{value}'" for value in values) + "]"


SEEDS: Mapping[str, str] = {
    "chain": f"""
        INSERT INTO stores SELECT n, ({_texts(CITIES)})[n], 1000 + 137.5 * n FROM generate_series(1, {STORE_COUNT}) n
    """,
    "shop": f"""
        INSERT INTO products
        SELECT 1 + g + {len(GOODS)} * m, ({_texts(MAKES)})[m + 1] || ' ' || ({_texts(GOODS)})[g + 1],
               (m + 1) * (10.75 + 3.5 * g), (m + 1) * (6.25 + 2.25 * g)
        FROM generate_series(0, {len(GOODS) - 1}) g, generate_series(0, {len(MAKES) - 1}) m;
        INSERT INTO sales (store_id, clerk_id, product_id, quantity)
        SELECT 1 + n % {STORE_COUNT}, 1 + (n * 7) % {EMPLOYEE_COUNT}, 1 + (n * 11) % {PRODUCT_COUNT}, 1 + (n * 5) % 9
        FROM generate_series(1, {SALE_COUNT}) n
    """,
    "staff": f"""
        INSERT INTO employees
        SELECT n, ({_texts(NAMES)})[1 + n % {len(NAMES)}] || ' ' || n, 1 + n % {STORE_COUNT},
               CASE WHEN n > 6 THEN n / 6 END, 320 - 1.5 * n + (n * 37) % 400 / 10.0
        FROM generate_series(1, {EMPLOYEE_COUNT}) n
    """,
}
"""What every source is filled with."""
