"""Which columns of a regroup's rows hold the keys of their partition: by these a row leads back to it."""

from __future__ import annotations

from headwater.views.segments import RegroupStep, Windows
from headwater.views.spark_text import quoted


def partition_columns(step: RegroupStep) -> dict[str, str]:
    """Return the output columns of a regroup that hold its keys, with the keys they hold."""
    if isinstance(step.computed, Windows):
        texts = {quoted(key): key for key in step.keys}
        return {name: texts[text] for name, text in step.computed.outputs if text in texts}
    return {key: key for key in step.keys}
