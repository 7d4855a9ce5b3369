"""From `headwater.toml` and `views/*.sql` to what is meant, and what `run` has to do about it."""
