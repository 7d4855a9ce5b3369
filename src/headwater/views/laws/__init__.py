"""How the changes of each step follow from the changes of what it reads, as SQL over rows with ticks."""
