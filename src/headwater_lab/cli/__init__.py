"""The lab's verbs on the command line, `headwater lab …`: one small file per verb."""

from headwater_lab.cli.app import lab

__all__ = ["lab"]
