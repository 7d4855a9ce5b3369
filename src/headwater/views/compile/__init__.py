"""The compiler from any SQL to segments: one file per construct, called in the order that SQL gives its clauses."""

from headwater.views.compile.compile_view import compile_view

__all__ = ["compile_view"]
