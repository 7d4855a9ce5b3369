"""How each relation of a view is read, from what the project says of the view and of its relations.

    maintenance =                a relation that [relations] names        any other relation
    (not said)                   as it says                               as [defaults] says
    self, recompute-self         replica; "probe" is refused              replica
    probe, recompute-probe       probe; "replica" is refused              probe
    runtime                      as it says                               probe

What is said of a relation by name holds for all views, so a view that needs it otherwise contradicts it. A source that
does not tell every transaction is always copied (`require_copied`).
"""

from __future__ import annotations

from collections.abc import Mapping

from headwater.errors import InvalidProject
from headwater.maintenance.published.algorithms import DescribedAlgorithm
from headwater.model.keeping import Continuous, Maintenance
from headwater.model.project import PROJECT_FILE, Project, Reading, ViewFile
from headwater.model.relation import RelationName
from headwater.sources.source import Source
from headwater.views.steps.segments import SegmentedView


def view_readings(file: ViewFile, view: SegmentedView, project: Project) -> Mapping[RelationName, Reading]:
    """Return how a view reads each of its relations."""
    return {name: _reading(file, name, project) for name in view.relations}


def require_copied(view: str, readings: Mapping[RelationName, Reading], sources: Mapping[str, Source]) -> None:
    """Refuse to probe a source that does not tell every transaction: what a probe sees may belong to no state."""
    for name, reading in readings.items():
        if reading is Reading.PROBE and not sources[name.source].abilities.tells_every_transaction:
            raise InvalidProject(
                f'view "{view}" cannot probe {name}',
                code="HW-350",
                detail=f'source "{name.source}" does not tell every transaction, so what is seen at it between two '
                "states that it tells of cannot be brought to either",
                hint=f'write reading = "replica" below [relations."{name}"] in {PROJECT_FILE}, and no maintenance for '
                "the view that probes",
            )


def check_keeping(file: ViewFile, described: DescribedAlgorithm) -> None:
    """Refuse a view of a published algorithm that is to be kept in a way that only the engine can."""
    if described.run is None:
        return
    if file.maintenance not in (None, Maintenance.PROBE):
        raise _unlike_algorithm(file, f'maintenance = "{file.maintenance.value}"', described)
    if not isinstance(file.refresh, Continuous):
        raise _unlike_algorithm(file, f'refresh = "{file.refresh}"', described)


def _reading(file: ViewFile, relation: RelationName, project: Project) -> Reading:
    declared = project.readings.get(relation)
    if file.maintenance is None:
        return project.reading(relation)
    if file.maintenance is Maintenance.RUNTIME:
        return declared or Reading.PROBE
    needed = Reading.REPLICA if file.maintenance.reads_replicas else Reading.PROBE
    if declared not in (None, needed):
        raise InvalidProject(
            f'view "{file.name}" cannot be kept by "{file.maintenance.value}" ({PROJECT_FILE})',
            code="HW-140",
            detail=f'it reads {relation}, and [relations."{relation}"] says reading = "{declared.value}" for all views',
            hint="remove one of the two lines",
        )
    return needed


def _unlike_algorithm(file: ViewFile, declared: str, described: DescribedAlgorithm) -> InvalidProject:
    return InvalidProject(
        f'view "{file.name}" cannot have {declared} with algorithm "{described.name}" ({PROJECT_FILE})',
        code="HW-141",
        detail=f"{described.name} asks the sources for every transaction when it arrives",
        hint="remove one of the two lines",
    )
