"""The rewrite rules that bring a view's SELECT to normal form, one file each."""
