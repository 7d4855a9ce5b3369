"""A project that cannot be run on the Spark that the environment names; a program that prints why, as JSON.

python refused_story.py FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from scripted_world import SOLD, ScriptedWorld

import headwater


def main(folder: Path) -> None:
    """Run a project, and print why it is refused."""
    world = ScriptedWorld(None, folder)  # type: ignore[arg-type]  # it is opened by its folder
    world.write_project({"sold": SOLD}, '[settings.service]\nexecutor_wait = "10 s"\n')
    try:
        with headwater.open(folder) as project:
            project.run(until_idle=True)
    except headwater.HeadwaterError as error:
        sys.stdout.write(json.dumps({"code": error.code, "detail": error.detail, "text": str(error)}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
