"""The steps that a view is computed by, and what each of them reads, keeps and costs."""
