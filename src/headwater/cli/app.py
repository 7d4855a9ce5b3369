"""The program with all of its verbs."""

from __future__ import annotations

from headwater.cli.added_verbs import add_verbs_of_others
from headwater.cli.entry import VERBS, load_verb
from headwater.cli.program import add_verb, new_app

app = new_app()
for name in VERBS:
    add_verb(app, load_verb(name))
add_verbs_of_others(app)
