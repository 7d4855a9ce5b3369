"""The experiments of papers 004 and 002: views and statistics, figures, tables, and one report of all."""
