"""The address `/metrics`, which a metrics server asks: what happened here, and how the warehouse is doing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from headwater.errors import HeadwaterError
from headwater.model.position import Tick
from headwater.observe.metrics import Levels, Metrics, require_metrics_package
from headwater.warehouse.format import is_warehouse
from headwater.warehouse.query import Warehouse

if TYPE_CHECKING:
    from headwater.api.session import Headwater

HERE = "127.0.0.1"


def metrics_of(project: Headwater) -> Metrics:
    """Return metrics that read a project's levels whenever they are asked for."""
    return Metrics(lambda: _levels(project))


@contextmanager
def serving_metrics(metrics: Metrics, port: int) -> Iterator[str]:
    """Serve metrics to programs of this machine beside a block, and give it the address. Port 0 is any free one."""
    require_metrics_package()
    from prometheus_client import start_http_server  # noqa: PLC0415 - a package of an extra

    try:
        server, thread = start_http_server(port, HERE, metrics.registry)
    except OSError as error:
        raise HeadwaterError(
            f"metrics cannot be served on {HERE}:{port}",
            code="HW-185",
            detail=error.strerror or str(error),
            hint="choose another port with --metrics; 0 takes any that is free",
        ) from None
    try:
        yield f"http://{HERE}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def metrics_text(project: Headwater) -> bytes:
    """Return what is known of a project outside of its maintainer: the levels."""
    require_metrics_package()
    from prometheus_client import generate_latest  # noqa: PLC0415 - as above

    return generate_latest(metrics_of(project).registry)


def _levels(project: Headwater) -> Levels | None:
    if not is_warehouse(project.project.warehouse):
        return None
    status = project.status(count_rows=False)
    warehouse = Warehouse.open(project.project.warehouse)
    now = datetime.now(UTC)
    lacking = {one.name: one.frontier for one in status.views if one.frontier is not None}
    return Levels(
        status=status,
        view_lag_seconds={view: _age_seconds(warehouse, frontier, now) for view, frontier in lacking.items()},
    )


def _age_seconds(warehouse: Warehouse, frontier: Tick, now: datetime) -> float:
    """Return how long ago the first transaction was committed that a view does not show, 0 if there is none."""
    if frontier >= warehouse.log.last_tick:
        return 0.0
    first = max(frontier, warehouse.log.horizon())
    missing = warehouse.log.transactions(None, first, Tick(first + 1))
    return max((max(0.0, (now - one.committed_at).total_seconds()) for _, one in missing), default=0.0)
