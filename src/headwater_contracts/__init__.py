"""The contracts of Headwater's seams as tests, for whoever adds an implementation; `sources` is that of sources."""
