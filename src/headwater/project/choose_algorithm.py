"""Which algorithm maintains a view, and what it promises. A view that lacks what it needs is refused."""

from __future__ import annotations

from collections.abc import Mapping

from headwater.errors import InvalidProject, InvalidView, did_you_mean
from headwater.maintenance.published.algorithms import NAMES, DescribedAlgorithm, algorithm
from headwater.model.guarantee import Guarantee
from headwater.model.project import PROJECT_FILE, Reading, ViewFile
from headwater.model.relation import RelationName
from headwater.views.steps.segments import Needs, SegmentedView


def chosen_algorithm(file: ViewFile) -> DescribedAlgorithm:
    """Return the algorithm that the project names for a view."""
    if file.algorithm not in NAMES:
        raise InvalidProject(
            f'there is no algorithm "{file.algorithm}" (view "{file.name}" in {PROJECT_FILE})',
            code="HW-122",
            detail=f"there are {', '.join(NAMES)}",
            hint=did_you_mean(file.algorithm, NAMES, otherwise="remove the line: the default needs nothing"),
        )
    return algorithm(file.algorithm)


def view_guarantee(file: ViewFile, view: SegmentedView) -> Guarantee:
    """Return what readers of a view may rely on, once it is known how it is computed.

    A view that is recomputed is so once per commit, unless its author asks for every tick.
    """
    promised = promised_guarantee(file)
    if file.guarantee is None and is_recomputed(view):
        return min(promised, Guarantee.STRONG)
    return promised


def promised_guarantee(file: ViewFile) -> Guarantee:
    """Return what readers of a view may rely on. More than its algorithm can give is refused."""
    described = chosen_algorithm(file)
    if file.guarantee is None:
        return described.guarantee
    if file.guarantee > described.guarantee:
        raise InvalidProject(
            f'view "{file.name}" cannot be {file.guarantee.value} with algorithm "{described.name}"',
            code="HW-125",
            detail=f"{described.name} is {described.guarantee.value}: {described.remark}",
            hint=f'remove guarantee = "{file.guarantee.value}", or choose another algorithm',
        )
    return file.guarantee


def is_recomputed(view: SegmentedView) -> bool:
    """Tell whether some part of a view is computed from whole inputs, once per commit."""
    return any(segment.step.needs is Needs.EVERYTHING for segment in view.segments)


def check_algorithm(
    file: ViewFile, view: SegmentedView, readings: Mapping[RelationName, Reading]
) -> DescribedAlgorithm:
    """Refuse a view that lacks what its algorithm needs."""
    described = chosen_algorithm(file)
    join = view.only_join
    if join is None:
        missing = [] if described.run is None else ["it maintains joins, and this view is more than one join"]
    else:
        missing = list(described.missing(join))
    if described.run is not None:
        copied = [str(name) for name, reading in readings.items() if reading is not Reading.PROBE]
        if copied:
            missing.append(f"it asks sources, and a replica is kept of {', '.join(copied)}")
    if missing:
        raise InvalidView(
            f'view "{view.name}" cannot be maintained by "{described.name}"',
            code="HW-245",
            detail="; ".join(missing),
            hint=f"{described.name} needs {_needs(described)}; the default algorithm needs nothing",
        )
    return described


def _needs(described: DescribedAlgorithm) -> str:
    probing = ('every relation read by probes (reading = "probe")',)
    return ", and ".join([*(requirement.name for requirement in described.requirements), *probing])
