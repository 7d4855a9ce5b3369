"""Materialized SQL views over several independent databases, kept exact on Apache Spark."""
