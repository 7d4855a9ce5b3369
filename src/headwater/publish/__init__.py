"""Views for other programs: plain Delta tables of their current state."""
