"""② Accept transactions once, in order, durably."""
