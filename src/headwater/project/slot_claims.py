"""Which slot of each source a warehouse follows by: its own, recorded in its change log, and no other warehouse's.

    claim (durable) ──► make the slot ──► begin: note where it starts (durable) ──► follow

A source that deletes its log deletes it for all followers of the same slot. So every warehouse has
slots of its own: their names end in a random part and are recorded in the mark of the change log before they are made.
A warehouse that was copied has the same record. It is found out by comparing: what a source has forgotten lies beyond
what the change log holds only if another told it (`require_held`). A source that holds its log for nobody is followed
by such a name too, which it has no slot for.

| slot recorded | at the source | then |
|---|---|---|
| yes, begun | there | it is followed by, if the change log holds what the source has forgotten |
| yes, not begun | there | a maintainer died after making it; views were marked before, so it begins now |
| yes | not there | torn down, or lost: a new slot, and what was read of the source is read again |
| no | the former one is there | a warehouse from before slots were recorded: adopted once, with a warning |
| no | not there | a new slot; what was read of the source before is read again |
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from headwater.changelog import ChangeLog
from headwater.fail_points import reach
from headwater.model.relation import RelationName
from headwater.project.teardown_result import LeftSlot
from headwater.sources.source import ProjectSlots, SlotState, Source, require_held


class SlotOrigin(Enum):
    """How a warehouse came to a slot."""

    RECORDED = "recorded"
    ADOPTED = "adopted"
    NEW = "new"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotClaim:
    """The slot by which a source will be followed. `name` is None for a new one, which has none yet."""

    origin: SlotOrigin
    name: str | None
    others: tuple[SlotState, ...] = ()
    """The project's other slots at the source."""


def claim_slots(
    log: ChangeLog | None, sources: Mapping[str, Source], read_sources: Collection[str]
) -> dict[str, SlotClaim]:
    """Look by which slot every source will be followed. Changes nothing.

    `read_sources` are those that the warehouse has read. A source that has deleted more than the log holds is refused.
    """
    return {
        name: _claim(name, log, source.slots(), name in read_sources)
        if source.abilities.holds_log
        else _claim_name(name, log)
        for name, source in sources.items()
    }


def _claim_name(source: str, log: ChangeLog | None) -> SlotClaim:
    """Return by which name a source is followed that holds its log for nobody: there is nothing to look at there."""
    recorded = None if log is None else log.slots().get(source)
    if recorded is None or not recorded.has_begun:
        return SlotClaim(origin=SlotOrigin.NEW, name=None)
    return SlotClaim(origin=SlotOrigin.RECORDED, name=recorded.name)


def _claim(source: str, log: ChangeLog | None, slots: ProjectSlots, is_known: bool) -> SlotClaim:
    recorded = None if log is None else log.slots().get(source)
    name, origin = None, SlotOrigin.NEW
    if recorded is not None and recorded.name in slots.present:
        name, origin = recorded.name, SlotOrigin.RECORDED
    elif recorded is None and is_known and slots.former in slots.present:
        name, origin = slots.former, SlotOrigin.ADOPTED
    if name is not None and (lost := slots.present[name].lost) is not None:
        raise lost
    if log is not None and recorded is not None and recorded.has_begun and name is not None:
        require_held(name, slots.present[name].forgotten_to, log.positions())
    others = tuple(slot for slot in slots.present.values() if slot.name != name)
    return SlotClaim(origin=origin, name=name, others=others)


def take_slot(claim: SlotClaim, source: Source, relations: Sequence[RelationName], log: ChangeLog) -> None:
    """Make a source keep its log for this warehouse alone, and note from where on the change log will hold it.

    Views that have to be built again for a new slot are marked before this is called.
    """
    if claim.origin is SlotOrigin.ADOPTED:
        assert claim.name is not None, "what is adopted is there"
        forgotten_to = source.prepare(relations, claim.name, is_new=False)
        log.adopt(source.name, claim.name, forgotten_to)
        return
    if claim.origin is SlotOrigin.NEW:
        log.claim(source.name, source.new_slot())
    slot = log.slots()[source.name]
    forgotten_to = source.prepare(relations, slot.name, is_new=not slot.has_begun)
    reach("slot made")
    held_to = log.positions()
    if slot.has_begun and source.abilities.holds_log:
        require_held(slot.name, forgotten_to, held_to)
    begins = forgotten_to if not slot.has_begun else {n: one for n, one in forgotten_to.items() if n not in held_to}
    log.begin(source.name, begins)


def left_slot(source: str, slot: SlotState) -> LeftSlot:
    """Return a warning about a slot that is not ours."""
    return LeftSlot(
        source=source,
        slot=slot.name,
        is_in_use=slot.is_in_use,
        held_bytes=slot.held_bytes,
        what=slot.what,
        drop=slot.drop,
    )


def slot_warnings(claims: Mapping[str, SlotClaim]) -> Iterator[tuple[str, str]]:
    """Yield (source, sentence) for what a person should know about slots."""
    for source, claim in claims.items():
        if claim.origin is SlotOrigin.ADOPTED:
            yield source, _adopted(source, claim)
        for other in claim.others:
            if not other.is_in_use:
                yield source, str(left_slot(source, other))


def _adopted(source: str, claim: SlotClaim) -> str:
    return (
        f"the slot {claim.name} is from a time when the warehouses of a project shared one, and is taken over: "
        "that no other warehouse has used it, so that changes are missing here, cannot be proved. `headwater check` "
        f"compares the views with the sources; `headwater teardown --source {source}`, then `run`, reads it again"
    )
