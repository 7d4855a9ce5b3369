"""Answer a sweep's questions without asking, as far as the batch's own changes and kept rows suffice.

    question ──► the batch's net changes (`known_rows`) ──► kept rows that show it (`own_looks`) ──► the source

Whatever is found without asking is as of the tick where the batch begins, and so the whole answer is brought there. A
source whose snapshot is not open cannot be asked: then it is said that it is needed, and the batch is tried again with
one. So a batch for which all is known asks nobody, and goes on while the sources are away.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headwater.deltas.on_arrow import ArrowBag, ArrowKeys
from headwater.maintenance.known_rows import Known, known_rows
from headwater.maintenance.questions import Answer, Ask, Probe, SawTicks
from headwater.maintenance.rebase import rebase
from headwater.position import Tick
from headwater.relation import COUNT, TICK, Relation, RelationName
from headwater.runtime.accepted_log import AcceptedLog
from headwater.runtime.asked import Asked
from headwater.runtime.own_looks import Look
from headwater.runtime.performer import Performer, Snapshots


class SourceNeeded(Exception):
    """A source has to be asked whose snapshot is not open."""


@dataclass(slots=True, kw_only=True)
class SelfPerformer:
    """Answers the questions of one view's sweep over a batch that begins at `lo`."""

    relations: Mapping[RelationName, Relation]
    columns: Mapping[RelationName, tuple[str, ...]]
    """The columns that the view needs of its relations."""
    net: Mapping[RelationName, ArrowBag]
    """What changes in its relations over the batch, all ticks together."""
    lo: Tick
    log: AcceptedLog
    looks: Sequence[Look]
    copied: Collection[RelationName]
    snapshots: Snapshots
    others: Performer
    known_key_count: int = 0

    def __call__(self, ask: Ask[ArrowKeys]) -> Sequence[Answer[ArrowBag]]:
        """Answer the probes of one question; what is left to ask is asked at once."""
        known = [self._known(probe) for probe in ask.probes]
        left = [_left(probe, found) for probe, found in zip(ask.probes, known, strict=True)]
        due = tuple(probe for probe in left if _is_due(probe))
        for probe in due:
            if probe.relation not in self.copied and probe.relation.source not in self.snapshots:
                raise SourceNeeded
        told = iter(self.others(Ask(probes=due)) if due else ())
        self.known_key_count += sum(len(found.keys) for found in known if found is not None)
        return [
            self._whole(probe, found, next(told) if _is_due(probe) else None)
            for probe, found in zip(left, known, strict=True)
        ]

    @property
    def asked(self) -> Asked:
        """What sources were asked, by relation."""
        return self.others.asked

    def _known(self, probe: Probe[ArrowKeys]) -> Known[ArrowBag] | None:
        """Return what need not be asked; None where nothing can be known, or a replica has it all."""
        if probe.keys is None or probe.relation in self.copied:
            return None
        relation = self.relations[probe.relation]
        known = known_rows(probe, relation, self.net, self.columns)
        for look in self.looks:
            if _shows(look, probe, relation):
                rows = look.find(probe.columns, probe.keys.without(known.keys))
                keys = rows.keys(probe.columns, rows, probe.columns)
                known = Known(keys=known.keys.plus(keys), rows=_picked(known.rows, probe).plus(_picked(rows, probe)))
        return replace(known, rows=_picked(known.rows, probe))

    def _whole(
        self, left: Probe[Any], known: Known[ArrowBag] | None, answer: Answer[ArrowBag] | None
    ) -> Answer[ArrowBag]:
        """Return what was known and what was asked as one answer."""
        if known is None:
            assert answer is not None, "what cannot be known is asked for"
            return answer
        rows = known.rows if answer is None else known.rows.plus(rebase(left, answer, self.log, self.lo))
        return Answer(rows=rows, sight=SawTicks(upto=self.lo))


def _left(probe: Probe[ArrowKeys], known: Known[ArrowBag] | None) -> Probe[ArrowKeys]:
    if known is None or probe.keys is None:
        return probe
    return replace(probe, keys=probe.keys.without(known.keys))


def _is_due(probe: Probe[ArrowKeys]) -> bool:
    return probe.keys is None or len(probe.keys) > 0


def _shows(look: Look, probe: Probe[ArrowKeys], relation: Relation) -> bool:
    is_by_key = set(probe.columns) == set(relation.key)
    return is_by_key and look.shown.relation.name == probe.relation and set(probe.wanted) <= set(look.shown.wanted)


def _picked(rows: ArrowBag, probe: Probe[ArrowKeys]) -> ArrowBag:
    """Return the rows with the columns that were asked for."""
    return ArrowBag(rows.table.select([*probe.wanted, TICK, COUNT])).net()
