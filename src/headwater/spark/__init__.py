"""The Spark session: how it is built, its types, the count of its jobs, the kinds of its errors."""
