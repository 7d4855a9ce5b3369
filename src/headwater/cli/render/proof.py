"""Draw what `prove` found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from headwater.cli.render.page import Grid, Line, Page
from headwater.prove.result import ProveResult


def draw_proof_line(result: ProveResult) -> str:
    """Return how far a proof has come, in a line."""
    wrong = f"{len(result.wrong)} wrong" if result.wrong else "none wrong"
    return f"{result.view_count:,} views, {result.state_count:,} states, {wrong}, {result.seconds:.0f} s"


def draw_proof(result: ProveResult) -> Page:
    """Show what was compared, what was refused, and what was wrong."""
    refused = sum(result.refused.values())
    rows = (
        ("views", f"{result.view_count:,}"),
        ("states compared", f"{result.state_count:,}"),
        ("views judged by Spark", f"{result.judged_by_spark:,}"),
        ("pairs of constructs in 5 views or more", f"{result.pair_count:,} of {result.pairs_possible:,}"),
        ("pairs that are refused by rule", f"{len(result.ruled_out):,}" + _codes(Counter(result.ruled_out.values()))),
        ("views refused", f"{refused:,} ({result.refused_share:.1%})" + _codes(result.refused)),
        ("views that stopped", f"{sum(result.stopped.values()):,}" + _codes(result.stopped)),
        ("views for which DuckDB and Spark differ", f"{len(result.disagreed):,}"),
        ("views that could not be judged", f"{len(result.unjudged):,}"),
        ("states wrong", f"{len(result.wrong):,}"),
        ("seed, seconds", f"{result.seed}, {result.seconds:.0f}"),
    )
    page: list[Grid | Line] = [Grid(headings=("what", "how many"), rows=rows, right=frozenset())]
    for wrong in result.wrong:
        page.append(Line(text=f"wrong at tick {wrong.tick}: {wrong.sql}", style="red"))
        page += [Line(text=f"  {line}") for line in wrong.difference.splitlines()]
        if wrong.file:
            page.append(Line(text=f"  again: headwater prove --replay {wrong.file}"))
    if result.own_failures:
        page.append(Line(text=f"Headwater itself failed over views{_codes(result.own_failures)}", style="red"))
    if result.is_proved:
        page.append(Line(text="every state was what the view's SQL gives", style="green"))
    return page


def _codes(counts: Mapping[str, int]) -> str:
    listed = ", ".join(f"{code} {count}" for code, count in sorted(counts.items()))
    return f": {listed}" if listed else ""
