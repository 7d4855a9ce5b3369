"""Recomputation is the judge: grade a history, compare two bags."""
