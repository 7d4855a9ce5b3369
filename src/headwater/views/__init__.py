"""From a view's SQL to what maintenance needs to know of it."""
