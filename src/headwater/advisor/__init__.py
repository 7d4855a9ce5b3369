"""What is worth keeping: what maintaining and tracing a view costs with which auxiliary tables, and how to choose."""
