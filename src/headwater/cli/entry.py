"""The program's entry point. A verb is imported without the others: all of them take longer than most of them run."""

from __future__ import annotations

import sys
from importlib import import_module

import typer

from headwater.cli.program import add_verb, new_app, run_program

VERBS = frozenset(
    {
        "advise",
        "analyze",
        "check",
        "demo",
        "explain",
        "history",
        "impact",
        "init",
        "plan",
        "prove",
        "query",
        "refresh",
        "release",
        "run",
        "status",
        "teardown",
        "trace",
        "why-not",
    }
)


def main() -> None:
    """Run the program."""
    arguments = sys.argv[1:] or ["--help"]
    run_program(app_for(arguments[0]), arguments)


def app_for(verb: str) -> typer.Typer:
    """Return the program with one verb, or with all of them if the first argument is not a verb."""
    if verb not in VERBS:
        whole: typer.Typer = import_module("headwater.cli.app").app
        return whole
    name = verb.replace("-", "_")
    app = new_app()
    add_verb(app, getattr(import_module(f"headwater.cli.{name}"), name))
    return app
