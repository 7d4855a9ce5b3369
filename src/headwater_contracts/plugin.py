"""What pytest loads by itself: failed assertions of contracts are shown with their values. Imports nothing else."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("headwater_contracts.followed", "headwater_contracts.sources")
