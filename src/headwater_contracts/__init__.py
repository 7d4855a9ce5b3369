"""The contracts of Headwater's protocols as tests, for those who add an implementation. `sources` is for sources."""
