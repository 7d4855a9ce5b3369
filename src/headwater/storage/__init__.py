"""Delta tables on disk: data files, fenced commits, pruning, and what went wrong with a file."""
