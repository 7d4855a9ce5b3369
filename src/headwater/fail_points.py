"""Named moments at which a test may kill this process, to show that nothing is lost and nothing happens twice.

Every durable step is surrounded by two of them. They cost one dictionary lookup and do nothing in ordinary runs.
"""

from __future__ import annotations

import os
import signal

VARIABLE = "HEADWATER_FAIL_POINT"


def reach(name: str) -> None:
    """Die here, as by `kill -9`, if the environment names this point.

    >>> reach("after a step that no test asked to fail")
    """
    if os.environ.get(VARIABLE) == name:
        os.kill(os.getpid(), signal.SIGKILL)
