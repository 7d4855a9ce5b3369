"""Verbs that other distributions bring, found by the entry point group `headwater.verbs`.

Such an entry point names a `typer.Typer`, whose commands become `headwater NAME …`. The lab comes this way.
"""

from __future__ import annotations

from importlib.metadata import entry_points

import typer

from headwater.cli.outcome import outcome
from headwater.cli.program import add_verb
from headwater.errors import HeadwaterError

GROUP = "headwater.verbs"

_ANYTHING: dict[str, object] = {"allow_extra_args": True, "ignore_unknown_options": True}
"""Whatever is asked of a verb that is not installed, the answer is how to install it."""


def add_verbs_of_others(app: typer.Typer) -> None:
    """Give the program the verbs that installed distributions bring. Without the lab, one that says how to get it."""
    found = entry_points(group=GROUP)
    for name in sorted(found.names):
        try:
            app.add_typer(found[name].load(), name=name)
        except Exception as error:  # noqa: BLE001 - what another distribution does wrong must not take our verbs away
            typer.echo(f'the verb "{name}" that is installed cannot be loaded: {error}', err=True)
    if "lab" not in found.names:
        add_verb(app, lab, _ANYTHING)


def lab(context: typer.Context) -> None:
    """See what the published algorithms guarantee and cost (needs `pip install headwater-lab`)."""
    with outcome(as_json="--json" in context.args, debug=False):
        raise HeadwaterError(
            "the lab is not installed",
            code="HW-172",
            detail="it is a distribution of its own, headwater-lab, because maintaining views needs nothing of it",
            hint="pip install headwater-lab",
        )
