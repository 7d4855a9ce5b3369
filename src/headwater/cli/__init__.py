"""The command line: one small file per verb, one place that decides exit codes, one place that draws."""

from headwater.cli.entry import main

__all__ = ["main"]
