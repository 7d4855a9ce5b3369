"""Make the fixture of format 3: play the story's first batches by version 0.1.

git worktree add --detach /tmp/format3 40c4ac3
PYTHONPATH=/tmp/format3/src .venv/bin/python tests/integration/older_warehouses/make_format_3.py
"""

from __future__ import annotations

import tarfile
import tempfile
from dataclasses import replace
from pathlib import Path

from headwater.prove.play import _play
from headwater.prove.trial import Trial
from headwater.runtime.spark import spark_session

HERE = Path(__file__).parent
BATCHES = 2


def main() -> None:
    story = Trial.read((HERE / "story.json").read_text(encoding="utf-8"))
    cuts = story.cuts[:BATCHES]
    with tempfile.TemporaryDirectory() as folder, spark_session() as spark:
        played = _play(spark, replace(story, after=story.after[: sum(cuts)], cuts=cuts), Path(folder))
        assert not played.wrong
        with tarfile.open(HERE / "format_3.tar.gz", "w:gz") as packed:
            packed.add(Path(folder) / "warehouse", "warehouse")


if __name__ == "__main__":
    main()
