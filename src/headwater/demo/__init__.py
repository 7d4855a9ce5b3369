"""A department store on three embedded databases, played and judged: what `headwater demo` shows."""
