"""The published algorithms at work on live sources."""
