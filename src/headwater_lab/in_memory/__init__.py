"""What a warehouse does on Arrow and Spark, in plain Python: signed bags, the law, installs and lookups."""
