"""Timings, as ratios taken in one run on one machine. `python -m bench --help`."""
