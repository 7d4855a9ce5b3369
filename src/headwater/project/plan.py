"""What `run` will do, as data: the difference between what a project says and what its warehouse keeps.

`plan` prints it and `run` carries it out, from the same value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self, assert_never

from headwater.deltas.extent import WHOLE
from headwater.errors import ConfirmationNeeded, HeadwaterError
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.project.fill import Fill, Way, fill
from headwater.project.plan_result import Action, OwnerSql, PlanResult, PlanStep, Subject
from headwater.project.resolve import ResolvedProject, ResolvedView
from headwater.project.slot_claims import SlotClaim, slot_warnings
from headwater.views.steps.segment_names import shape
from headwater.warehouse.catalog import ReplicaEntry, ViewEntry

_DROPPED = "no longer in the project"
_OTHER_STEPS = (
    "its SQL is as before, but it is computed in other steps: a key or NOT NULL of a table that it reads, "
    "its settings (keep, group_tables, maintenance), or Headwater itself changed"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a warehouse keeps already."""

    views: Mapping[str, ViewEntry]
    replicas: Mapping[RelationName, ReplicaEntry]
    """Those that can be read on."""
    lost_sources: frozenset[str] = frozenset()
    """Sources whose log does not go on where the warehouse stopped: what was read from them has to be read again."""
    claims: Mapping[str, SlotClaim] = field(default_factory=dict)
    frontiers: Mapping[str, Tick] = field(default_factory=dict)
    """How far the views have come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """What a person has agreed to lose: the history of these views, or of any."""

    views: frozenset[str] = frozenset()
    is_given: bool = False
    """Whether to everything."""

    @classmethod
    def of(cls, yes: bool | Collection[str]) -> Self:
        """Return the consent of a yes, or of a yes to these views.

        >>> Consent.of(["sales"]).missing({"sales": "…", "stock": "…"})
        ('stock',)
        """
        return cls(is_given=yes) if isinstance(yes, bool) else cls(views=frozenset(yes))

    def also(self, views: Iterable[str]) -> Consent:
        """Return this consent, and that to these views."""
        return replace(self, views=self.views.union(views))

    def missing(self, lost: Iterable[str]) -> tuple[str, ...]:
        """Return the views of some whose history may not be deleted."""
        return () if self.is_given else tuple(name for name in lost if name not in self.views)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """The steps that bring a warehouse to what its project says."""

    created: tuple[str, ...]
    changed: tuple[str, ...]
    dropped: tuple[str, ...]
    kept: tuple[str, ...]
    copied: Mapping[RelationName, Fill]
    """Relations whose replicas are made or widened, and how."""
    reasons: Mapping[str, str]
    failed: Mapping[str, HeadwaterError] = field(default_factory=dict)
    """Views that stay as they are, if they are there, because they were not understood."""
    rebuilt: frozenset[str] = frozenset()
    """The views that are computed again on request."""
    lost_sources: frozenset[str] = frozenset()
    claims: Mapping[str, SlotClaim] = field(default_factory=dict)
    """By which slot each source will be followed."""
    lost_history: Mapping[str, str] = field(default_factory=dict)
    """Views of which more than one state can be read now and that will not be there after, and why."""

    @property
    def born(self) -> tuple[str, ...]:
        """The views that have to be computed from scratch."""
        return self.created + self.changed

    def require(self, consent: Consent) -> None:
        """Refuse to go on if history would be lost without consent."""
        missing = consent.missing(self.lost_history)
        if not missing:
            return
        views = ", ".join(f'"{name}"' for name in missing)
        raise ConfirmationNeeded(
            f"this would delete the history of {'view' if len(missing) == 1 else 'views'} {views}",
            code="HW-156",
            detail="\n".join(f'"{name}": {self.lost_history[name]}' for name in missing),
            hint="if that is meant, run `headwater run --yes`; if not, put the views back as they were. "
            "`headwater plan` shows all that would change",
            views=missing,
        )


def make_plan(resolved: ResolvedProject, kept: Kept, rebuild: Sequence[str] = ()) -> RunPlan:
    """Return what has to be done. A view in `rebuild` is computed again in any case."""
    created, changed, same = [], [], []
    reasons: dict[str, str] = {}
    for name, view in resolved.views.items():
        entry = kept.views.get(name)
        if entry is None:
            created.append(name)
            reasons[name] = "new"
        elif reason := _why_changed(view, entry, kept, rebuilt=name in rebuild):
            changed.append(name)
            reasons[name] = reason
        else:
            same.append(name)
    dropped = tuple(name for name in kept.views if name not in resolved.views and name not in resolved.failed)
    copied = {}
    for relation, needed in resolved.replicated().items():
        held = kept.replicas[relation].content if relation in kept.replicas else None
        if (way := fill(resolved.relations[relation], needed, held)) is not None:
            copied[relation] = way
    return RunPlan(
        created=tuple(created),
        changed=tuple(changed),
        dropped=dropped,
        kept=tuple(same),
        copied=copied,
        reasons=reasons,
        failed=resolved.failed,
        rebuilt=frozenset(rebuild),
        lost_sources=kept.lost_sources,
        claims=kept.claims,
        lost_history={
            name: f"{reasons.get(name, _DROPPED)}; "
            f"ticks {kept.views[name].birth} to {kept.frontiers[name]} can be read now"
            for name in (*dropped, *changed)
            if name not in rebuild and kept.frontiers.get(name, 0) > kept.views[name].birth
            if name in dropped or not _lost(resolved.views[name], kept.views[name], kept)
        },
    )


def _why_changed(view: ResolvedView, entry: ViewEntry, kept: Kept, *, rebuilt: bool) -> str:
    """Return why a view has to be computed again, or an empty text if it goes on."""
    lost = _lost(view, entry, kept)
    below = [name for name, sql in view.view.lower_texts if (name, sql) not in entry.lower]
    columns = tuple((field.name, str(field.type)) for field in view.schema)
    guarantee = view.guarantee.value
    reasons = (
        (rebuilt, "asked for"),
        (bool(lost), f"the log of source {''.join(lost[:1])} does not go on where the warehouse stopped"),
        (entry.sql != view.view.sql, "its SQL changed"),
        (bool(below), f"view {''.join(below[:1])}, which it reads, changed"),
        (entry.guarantee != guarantee, f"its guarantee changed from {entry.guarantee} to {guarantee}"),
        (entry.completed != view.view.completed, _why_reordered(entry)),
        (entry.schema != columns, "the types of its columns changed"),
        (entry.shape != shape(view.view), _OTHER_STEPS),
    )
    return next((reason for is_so, reason in reasons if is_so), "")


def _lost(view: ResolvedView, entry: ViewEntry, kept: Kept) -> list[str]:
    """Return the sources of a view whose log does not go on: its states cannot be continued."""
    return sorted({*entry.gaps, *({name.source for name in view.view.relations} & kept.lost_sources)})


def _why_reordered(entry: ViewEntry) -> str:
    """Return why the order differs by which a view is computed, though its SQL is the same."""
    if entry.completed:
        return "other columns complete the order that its SQL leaves open"
    return "its SQL leaves an order open, which all columns of the row complete now"


def _told(way: Fill) -> str:
    """Return what is read for a replica, in words."""
    match way.way:
        case Way.WHOLE:
            rows = "" if way.content.rows.is_everything else f" of rows with {way.content.rows}"
            return f"copy {', '.join(way.content.columns)}{rows}"
        case Way.MORE_ROWS:
            return f"read rows with {way.rows}"
        case Way.MORE_COLUMNS:
            rows = "" if way.rows == WHOLE else f" of rows with {way.rows}"
            return f"read {', '.join(way.columns)}{rows}"
        case _:
            assert_never(way.way)


def _reason(plan: RunPlan, view: ResolvedView) -> str:
    """Return why a view is created, changed or kept, in words, and whether it is not compared when it is created."""
    name = view.view.name
    unchecked = name in plan.born and not view.is_compared_at_birth
    return plan.reasons.get(name, "") + ("; its steps are not compared with its SQL" if unchecked else "")


def show_plan(plan: RunPlan, resolved: ResolvedProject) -> PlanResult:
    """Return a plan as the steps that a person reads, in the order they are carried out."""
    steps = [PlanStep(action=Action.DROP, subject=Subject.VIEW, name=name, reason=_DROPPED) for name in plan.dropped]
    steps += [
        PlanStep(
            action=Action.BOOTSTRAP if way.way is Way.WHOLE else Action.WIDEN,
            subject=Subject.REPLICA,
            name=str(relation),
            reason=_told(way),
            row_estimate=resolved.relations[relation].row_estimate if way.rows == WHOLE else None,
        )
        for relation, way in plan.copied.items()
    ]
    for action, names in (
        (Action.CREATE, plan.created),
        (Action.CHANGE, plan.changed),
        (Action.KEEP, plan.kept),
    ):
        steps += [
            PlanStep(action=action, subject=Subject.VIEW, name=name, reason=_reason(plan, resolved.views[name]))
            for name in names
        ]
    steps += [
        PlanStep(
            action=Action.LEAVE,
            subject=Subject.VIEW,
            name=name,
            reason=f"[{error.code}] {error.summary}: {error.detail}",
        )
        for name, error in plan.failed.items()
    ]
    owner_sql = tuple(
        OwnerSql(source=source, statement=statement, ours=inspection.may_run_owner_sql)
        for source, inspection in resolved.inspections.items()
        for statement in inspection.owner_sql
    )
    about_slots = tuple(f'source "{source}": {sentence}' for source, sentence in slot_warnings(plan.claims))
    return PlanResult(
        steps=tuple(steps),
        owner_sql=owner_sql,
        warnings=(*resolved.warnings, *about_slots),
        lost_history=tuple(plan.lost_history),
    )
