"""③ From a batch of ticks to the exact change of a view at each of them. Pure."""
