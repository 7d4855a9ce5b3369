"""The algorithms that choose auxiliary tables, one file each. `choose` is the list of them."""
