"""What every verb answers: frozen values that the terminal, `--json` and Python callers share."""
