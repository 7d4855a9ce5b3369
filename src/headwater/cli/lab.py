"""`headwater lab` where the lab is not installed: how to get it."""

from __future__ import annotations

import typer

from headwater.cli.outcome import outcome
from headwater.errors import HeadwaterError


def lab(context: typer.Context) -> None:
    """See what the published algorithms guarantee and cost (needs `pip install headwater-lab`)."""
    with outcome(as_json="--json" in context.args, debug=False):
        raise HeadwaterError(
            "the lab is not installed",
            code="HW-172",
            detail="it is a distribution of its own, headwater-lab, because maintaining views needs nothing of it",
            hint="pip install headwater-lab",
        )
