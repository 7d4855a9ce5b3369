"""Rows that batches look up: replicas, auxiliary tables, stored and computed segments, sources."""
