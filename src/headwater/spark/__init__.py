"""The Spark session: built in one place, its types, its jobs counted, its errors told apart."""
