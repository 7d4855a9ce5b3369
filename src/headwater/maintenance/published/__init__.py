"""The algorithms of the papers, as generators that send queries and are sent answers. Pure."""
