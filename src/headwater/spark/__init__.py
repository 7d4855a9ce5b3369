"""The Spark session: taken or built in one place, its settings pinned, its jobs counted, its errors told apart."""
