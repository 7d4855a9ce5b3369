"""New views and replicas: read in chunks, computed at one tick."""
