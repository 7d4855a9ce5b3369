"""`headwater schema`."""

from __future__ import annotations

import json

import typer

from headwater.project.schema import project_schema


def schema() -> None:
    """Print the JSON schema of headwater.toml, by which editors complete its keys and mark mistakes."""
    typer.echo(json.dumps(project_schema(), indent=2, ensure_ascii=False))
