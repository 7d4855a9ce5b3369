"""The compiler from any SQL to segments: one file per construct, called in the order that SQL gives its clauses."""
