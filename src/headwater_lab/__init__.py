"""The lab: the published algorithms in a small world of sources and channels, to see what each is worth."""
