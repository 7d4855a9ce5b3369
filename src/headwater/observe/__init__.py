"""What happens while a warehouse is maintained: typed events, log lines, counts, status."""
