"""The nouns: relations, positions, transactions, ticks, guarantees, and what a project says. No I/O."""
