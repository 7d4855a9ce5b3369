"""A view's SQL text: parsed, checked, its names resolved, and the author's own words for what is in it."""
