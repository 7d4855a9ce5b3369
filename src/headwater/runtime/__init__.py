"""The maintainer's loop, its events, and the Spark session."""
