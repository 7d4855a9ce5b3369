"""Maintenance at work: state, batches, new views, published algorithms, and the service around them."""
