"""The algebra of change: signed bags and the law that joins them."""
