"""What the demo needs beside Headwater's own packages: said at once, not after Spark has started."""

from __future__ import annotations

import importlib.util
import re

from headwater.errors import HeadwaterError
from headwater.sources.embedded import demo_packages, install_command


def require_packages() -> None:
    """Refuse to play without the packages of the extra `demo`."""
    names = [re.split(r"[^\w-]", package, maxsplit=1)[0] for package in demo_packages()]
    missing = [name for name in names if importlib.util.find_spec(name.replace("-", "_")) is None]
    if missing:
        raise HeadwaterError(
            "the demo needs packages that are not installed",
            code="HW-171",
            detail=f"{', '.join(missing)}: database servers to play on, and a judge of their own",
            hint=install_command(),
        )
