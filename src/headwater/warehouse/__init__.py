"""④ Kept tables, commits, checkpoints, history."""
