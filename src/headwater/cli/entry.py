"""The program's entry point. A verb is imported without the others: all of them take longer than most of them run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module

import typer

from headwater.cli.program import add_verb, new_app, run_program

VERBS = (
    "init",
    "doctor",
    "plan",
    "run",
    "status",
    "ui",
    "query",
    "trace",
    "impact",
    "why-not",
    "changes",
    "publish",
    "history",
    "explain",
    "check",
    "advise",
    "analyze",
    "refresh",
    "release",
    "teardown",
    "schema",
    "demo",
    "prove",
)
"""In the order a person meets them; each is a function in a file of its name."""


def main() -> None:
    """Run the program."""
    arguments = sys.argv[1:] or ["--help"]
    run_program(app_for(arguments[0]), arguments)


def app_for(verb: str) -> typer.Typer:
    """Return the program with one verb, or with all of them if the first argument is not a verb."""
    if verb not in VERBS:
        whole: typer.Typer = import_module("headwater.cli.app").app
        return whole
    app = new_app()
    add_verb(app, load_verb(verb))
    return app


def load_verb(verb: str) -> Callable[..., None]:
    """Return the function that does a verb."""
    name = verb.replace("-", "_")
    found: Callable[..., None] = getattr(import_module(f"headwater.cli.{name}"), name)
    return found
