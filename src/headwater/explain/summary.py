"""The five lines that `explain` begins with: verdict, what is kept, what is read, what it costs, what is recomputed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headwater.explain.costs import ExplainedCost
from headwater.explain.steps import StepWords
from headwater.model.guarantee import Guarantee
from headwater.model.project import Reading
from headwater.model.relation import RelationName
from headwater.project.resolve import ResolvedView
from headwater.views.compile.reasons import CHOSEN, WHYS
from headwater.views.steps.segments import Needs, Segment, SegmentedView

_WHOLE = frozenset(why.code for why in WHYS if why.whole)
_MOST_TABLES = 4

_PROMISES = {
    Guarantee.COMPLETE: "readers see every right state, at its tick",
    Guarantee.STRONG: "readers see right states only, in order; some may be skipped",
    Guarantee.WEAK: "readers see right states only, in any order",
    Guarantee.CONVERGENT: "readers see the right state in the end",
    Guarantee.NONE: "nothing is promised of its states",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """How a view is maintained, in five lines."""

    verdict: str
    keeps: str
    reads: str
    cost: str
    recomputes: str

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines, each with its title."""
        return tuple(f"{title:<12} {text}" for title, text in self.data.items())

    @property
    def data(self) -> dict[str, str]:
        """The same by title."""
        return {
            "verdict": self.verdict,
            "keeps": self.keeps,
            "reads": self.reads,
            "cost": self.cost,
            "recomputes": self.recomputes,
        }


def summarize(resolved_view: ResolvedView, cost: ExplainedCost, words: StepWords) -> Summary:
    """Return the five lines of a view."""
    view = resolved_view.view
    promise = f"{resolved_view.guarantee.value}: {_PROMISES[resolved_view.guarantee]}"
    copied = [str(name) for name, reading in resolved_view.readings.items() if reading is Reading.REPLICA]
    return Summary(
        verdict=f"{view.name} is {how_maintained(view)} ({promise})",
        keeps=kept(view, copied, words),
        reads=cost.reads,
        cost=cost.against_recomputing,
        recomputes=recomputed(view, words),
    )


def how_maintained(view: SegmentedView) -> str:
    """Return the verdict: whether a view follows changes."""
    codes = {reason.code for reason in view.reasons}
    if any(segment.step.needs is Needs.EVERYTHING for segment in view.segments):
        return f"recomputed from its whole SQL at every {'refresh' if CHOSEN.code in codes else 'commit'}"
    if codes & _WHOLE:
        return "maintained by changes, but a part of it looks at all rows whenever one of them changes"
    if codes:
        return "maintained by changes, and what is in a changed group or partition is computed again"
    return "maintained by changes alone"


def kept(view: SegmentedView, copied: Sequence[str], words: StepWords) -> str:
    """Return what is stored for a view."""
    auxiliary = [segment for segment in view.segments[:-1] if segment.is_kept]
    texts = list(dict.fromkeys(_table_words(segment, words) for segment in auxiliary))
    more = f" and {len(texts) - _MOST_TABLES} more" if len(texts) > _MOST_TABLES else ""
    tables = f"auxiliary table{'' if len(auxiliary) == 1 else 's'} ({'; '.join(texts[:_MOST_TABLES])}{more})"
    replicas = f"replica{'' if len(copied) == 1 else 's'} of {', '.join(copied)}"
    return ", ".join(["the view", *([f"{len(auxiliary)} {tables}"] if texts else []), *([replicas] if copied else [])])


def _table_words(segment: Segment, words: StepWords) -> str:
    keys, partition = segment.step.row_keys, segment.step.partition
    if keys is not None and partition is not None:
        return f"groups by {words.columns(partition[0], keys)}" if keys else "totals"
    return f"rows of {', '.join(_relations(segment, words.view))}"


def _relations(segment: Segment, view: SegmentedView) -> list[str]:
    """Return the relations that a segment's rows come from."""
    segments = {one.name: one for one in view.segments}
    found: dict[RelationName, None] = {}
    waiting = [segment.name]
    while waiting:
        name = waiting.pop(0)
        if name in segments:
            waiting += segments[name].inputs
        else:
            found[name] = None
    return [str(name) for name in found]


def recomputed(view: SegmentedView, words: StepWords) -> str:
    """Return what is computed again when something changes, and why."""
    if not view.reasons:
        return "nothing: every change is computed from the changes of what it reads"
    segments = {segment.name: segment for segment in view.segments}
    parts: dict[str, list[str]] = {}
    for reason in view.reasons:
        segment = segments[reason.segment]
        part = segment.step.computed_words(segment, words)
        parts.setdefault(f"{reason.what} [{reason.code}]", []).append(part)
    return "; ".join(f"{', '.join(dict.fromkeys(found))}: {why}" for why, found in parts.items())
