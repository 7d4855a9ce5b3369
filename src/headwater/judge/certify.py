"""What a check found, as a certificate beside the warehouse: so that others see it later."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

from headwater.errors import WarehouseRefused
from headwater.judge.result import CheckResult, ViewCheck
from headwater.warehouse.certificates import Certificate, CertifiedView, note_certificate
from headwater.warehouse.query import Warehouse


def certify(warehouse: Warehouse, result: CheckResult, seconds: float) -> None:
    """Keep the result of a check. A warehouse that may only be read keeps none."""
    views = tuple(_certified(warehouse, one) for one in result.views)
    with contextlib.suppress(WarehouseRefused):
        note_certificate(warehouse.path, Certificate(checked_at=datetime.now(UTC), seconds=seconds, views=views))


def _certified(warehouse: Warehouse, one: ViewCheck) -> CertifiedView:
    return CertifiedView(
        view=one.view,
        promised=one.promised.value,
        found=one.verdict.guarantee.value,
        kept=one.kept,
        states_checked=one.verdict.states_checked,
        judged_by=dict(one.judged_by),
        birth=warehouse.view(one.view).birth,
        tick=one.tick,
        first_bad_tick=one.verdict.first_bad_tick,
        told="" if one.kept else str(one.verdict),
    )
