"""What `run` will do, as data: the difference between what a project says and what its warehouse keeps.

`plan` prints it and `run` carries it out, from the same value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from headwater.deltas.extent import WHOLE
from headwater.errors import HeadwaterError
from headwater.relation import RelationName
from headwater.results.planning import Action, OwnerSql, PlanResult, PlanStep, Subject
from headwater.runtime.fill import Fill, Way, fill
from headwater.runtime.understand import Understood, UnderstoodView
from headwater.views.segment_names import shape
from headwater.warehouse.catalog import ReplicaEntry, ViewEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a warehouse keeps already."""

    views: Mapping[str, ViewEntry]
    replicas: Mapping[RelationName, ReplicaEntry]
    """Those that can be read on."""
    lost_sources: frozenset[str] = frozenset()
    """Sources whose log does not go on where the warehouse stopped: what was read from them has to be read anew."""


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
    """The views that are computed anew because somebody asked for it."""

    @property
    def born(self) -> tuple[str, ...]:
        """The views that have to be computed from scratch."""
        return self.created + self.changed


def make_plan(understood: Understood, kept: Kept, rebuild: Sequence[str] = ()) -> RunPlan:
    """Return what has to be done; a view in `rebuild` is computed anew whatever it says."""
    created, changed, same = [], [], []
    reasons: dict[str, str] = {}
    for name, view in understood.views.items():
        entry = kept.views.get(name)
        if entry is None:
            created.append(name)
            reasons[name] = "new"
        elif reason := _why_changed(view, entry, kept, rebuilt=name in rebuild):
            changed.append(name)
            reasons[name] = reason
        else:
            same.append(name)
    dropped = tuple(name for name in kept.views if name not in understood.views and name not in understood.failed)
    copied = {}
    for relation, needed in understood.replicated().items():
        held = kept.replicas[relation].content if relation in kept.replicas else None
        if (way := fill(understood.relations[relation], needed, held)) is not None:
            copied[relation] = way
    return RunPlan(
        created=tuple(created),
        changed=tuple(changed),
        dropped=dropped,
        kept=tuple(same),
        copied=copied,
        reasons=reasons,
        failed=understood.failed,
        rebuilt=frozenset(rebuild),
    )


def _why_changed(view: UnderstoodView, entry: ViewEntry, kept: Kept, *, rebuilt: bool) -> str:
    """Return why a view has to be computed anew; empty if it goes on."""
    lost = sorted({name.source for name in view.view.relations} & kept.lost_sources)
    below = [name for name, sql in view.view.lower_texts if (name, sql) not in entry.lower]
    columns = tuple((field.name, str(field.type)) for field in view.schema)
    guarantee = view.guarantee.value
    reasons = (
        (rebuilt, "asked for"),
        (bool(lost), f"the log of source {''.join(lost[:1])} does not go on where the warehouse stopped"),
        (entry.sql != view.view.sql, "its SQL changed"),
        (bool(below), f"view {''.join(below[:1])}, which it reads, changed"),
        (entry.guarantee != guarantee, f"its guarantee changed from {entry.guarantee} to {guarantee}"),
        (entry.schema != columns, "the types of its columns changed"),
        (entry.shape != shape(view.view), "it is computed in other steps than before"),
    )
    return next((reason for is_so, reason in reasons if is_so), "")


def _told(way: Fill) -> str:
    """Return what is read for a replica, in words."""
    match way.way:
        case Way.ANEW:
            rows = "" if way.content.rows.is_everything else f" of rows with {way.content.rows}"
            return f"copy {', '.join(way.content.columns)}{rows}"
        case Way.MORE_ROWS:
            return f"read rows with {way.rows}"
        case Way.MORE_COLUMNS:
            rows = "" if way.rows == WHOLE else f" of rows with {way.rows}"
            return f"read {', '.join(way.columns)}{rows}"
        case _:
            assert_never(way.way)


def show_plan(plan: RunPlan, understood: Understood) -> PlanResult:
    """Return a plan as the steps that a person reads, in the order they are carried out."""
    steps = [
        PlanStep(action=Action.DROP, subject=Subject.VIEW, name=name, reason="no longer in the project")
        for name in plan.dropped
    ]
    steps += [
        PlanStep(
            action=Action.BOOTSTRAP if way.way is Way.ANEW else Action.WIDEN,
            subject=Subject.REPLICA,
            name=str(relation),
            reason=_told(way),
            row_estimate=understood.relations[relation].row_estimate if way.rows == WHOLE else None,
        )
        for relation, way in plan.copied.items()
    ]
    for action, names in (
        (Action.CREATE, plan.created),
        (Action.CHANGE, plan.changed),
        (Action.KEEP, plan.kept),
    ):
        steps += [
            PlanStep(action=action, subject=Subject.VIEW, name=name, reason=plan.reasons.get(name, ""))
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
        for source, inspection in understood.inspections.items()
        for statement in inspection.owner_sql
    )
    return PlanResult(steps=tuple(steps), owner_sql=owner_sql, warnings=understood.warnings)
